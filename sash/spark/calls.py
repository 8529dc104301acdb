"""Calls of Spark's state, many under way at once.

PySpark's client sends a request and waits for its answer, one block after the other: of the 80 us that takes a third
is the way to Java and back, and while one side works the other waits. Java takes requests from the line one by one and
answers in their order. So all requests for some blocks are sent before the first answer is read, and what is written is
not waited for until something else is asked.

    L1  answers come in the order of requests, so those to writes are read before any that was asked for later
    L2  at most AT_ONCE answers are unread when a request is sent, and those to writes are a few bytes each: they fit
        the buffers of the line, so Java never waits to answer while it is waited for
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.errors import PySparkRuntimeError
from pyspark.serializers import write_int
from pyspark.sql.types import StructType

AT_ONCE = 64  # requests under way; more blocks would not stay in the processor's cache until they are expanded
VERSION = 0  # of messages, before each


class Line:
    """The line to a map of a shard in Spark's state; whoever else uses it calls `settle` before."""

    def __init__(self, client: Any, name: str, key: StructType, value: StructType) -> None:
        from pyspark.sql.streaming.proto import StateMessage_pb2 as messages  # noqa: PLC0415 - protobuf, which only streams need

        self._client, self._name, self._key, self._value, self._messages = client, name, key, value, messages
        self._n_unread = 0  # answers to writes

    def values(self, keys: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """The values of keys, None for those that are not there; at most AT_ONCE of them."""
        for key in keys:
            self._send(getValue=self._messages.GetValue(userKey=self._pickled(self._key, key)))
        self.settle()
        for _ in keys:
            found = self._answer()
            yield self._client._deserialize_from_bytes(found) if found else None  # noqa: SLF001 - see line_to

    def update(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:
        """Write a value."""
        key_and_value = self._pickled(self._key, key), self._pickled(self._value, value)
        self._write(updateValue=self._messages.UpdateValue(userKey=key_and_value[0], value=key_and_value[1]))

    def remove(self, key: tuple[Any, ...]) -> None:
        """Remove a key, if it is there."""
        self._write(removeKey=self._messages.RemoveKey(userKey=self._pickled(self._key, key)))

    def settle(self) -> None:
        """Wait until all that was written has been answered."""
        self._client.sockfile.flush()
        while self._n_unread:
            self._n_unread -= 1
            self._answer()

    def _write(self, **call: Any) -> None:
        if self._n_unread == AT_ONCE:  # L2
            self.settle()
        self._send(**call)
        self._n_unread += 1

    def _send(self, **call: Any) -> None:
        of_map = self._messages.MapStateCall(stateName=self._name, **call)
        variable = self._messages.StateVariableRequest(mapStateCall=of_map)
        message = self._messages.StateRequest(stateVariableRequest=variable).SerializeToString()
        file = self._client.sockfile
        write_int(VERSION, file)
        write_int(len(message), file)
        file.write(message)

    def _answer(self) -> bytes:
        status, why, value = self._client._receive_proto_message()  # noqa: SLF001 - see line_to
        if status != 0:
            raise PySparkRuntimeError(f"Spark's state did not do what it was asked for: {why}")
        found: bytes = value
        return found

    def _pickled(self, schema: StructType, row: tuple[Any, ...]) -> bytes:
        data: bytes = self._client._serialize_to_bytes(schema, row)  # noqa: SLF001 - see line_to
        return data


class OneByOne:
    """The same by calls that anybody may make, for states that have no such line (PySpark's own tester)."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def values(self, keys: Sequence[tuple[Any, ...]]) -> Iterator[Any]:  # noqa: D102
        return map(self._state.getValue, keys)

    def update(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:  # noqa: D102
        self._state.updateValue(key, value)

    def remove(self, key: tuple[Any, ...]) -> None:  # noqa: D102
        self._state.removeKey(key)

    def settle(self) -> None:  # noqa: D102
        pass


def line_to(handle: Any, name: str, key: StructType, value: StructType) -> Line | OneByOne:
    """Open a map, and the fastest way to it: PySpark's messages, where they are as they were.

    It has no documented way to ask for many values; without these names of its own, calls are made one by one.
    """
    state = handle.getMapState(name, key, value)  # types, because Java would be asked what a text means
    client = getattr(handle, "_statefulProcessorApiClient", None)
    wanted = ("sockfile", "_receive_proto_message", "_serialize_to_bytes", "_deserialize_from_bytes")
    return Line(client, name, key, value) if all(hasattr(client, each) for each in wanted) else OneByOne(state)
