"""Arrow tables and record batches in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from sash.errors import DataError
from sash.frames.buffers import single
from sash.frames.sources import Answer, Table


class Source(Table):
    """A pyarrow Table or RecordBatch."""

    @classmethod
    def of_stream(cls, given: Any) -> Source:
        """Anything that exports Arrow: a DuckDB relation, an Ibis table; answers come as a pyarrow Table."""
        return cls(pa.table(given))

    @property
    def names(self) -> list[str]:  # noqa: D102
        return list(self.table.schema.names)

    @property
    def n_rows(self) -> int:  # noqa: D102
        return int(self.table.num_rows)

    def array(self, name: str) -> Any:  # noqa: D102
        if self.names.count(name) > 1:
            raise DataError(f"the table has {self.names.count(name)} columns of the name {name!r}; rename them first")
        return self.table.column(name)

    def take(self, rows: Any) -> Source:  # noqa: D102
        return Source(self.table.take(pa.array(rows)))

    def new(self, names: Sequence[str], rows: Any, answers: Mapping[str, Answer]) -> Any:  # noqa: D102
        keys = {name: single(self.array(name)).take(pa.array(rows)) for name in names}
        fields = [*(self.table.schema.field(name).with_type(keys[name].type) for name in names)]
        restored = {name: self._restored(answer) for name, answer in answers.items()}
        fields += [_field(name, answer) for name, answer in restored.items()]
        columns = [*keys.values(), *(answer.array for answer in restored.values())]
        return type(self.table).from_arrays(columns, schema=pa.schema(fields))

    def with_columns(self, answers: Mapping[str, Answer]) -> Any:  # noqa: D102
        table = self.table
        for name, answer in answers.items():
            answer = self._restored(answer)
            table = table.append_column(_field(name, answer), answer.array)
        return table

    def _restored(self, answer: Answer) -> Answer:
        """Values of an extension type, which travelled as what it is stored in."""
        kept = None if answer.like is None else self.table.schema.field(answer.like).type
        if not isinstance(kept, pa.BaseExtensionType):
            return answer
        return answer._replace(array=pa.ExtensionArray.from_storage(kept, answer.array))


def _field(name: str, answer: Answer) -> Any:
    return pa.field(name, answer.array.type, nullable=answer.is_nullable)
