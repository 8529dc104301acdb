"""Streams: rows that come in micro-batches, wait, answer and leave; by shard, over any store of blocks of bytes."""
