"""Suites by which others test their own aggregates, algorithms and stores; shipped, and used by Sash itself.

    laws         assert_laws(aggregate), law_test(aggregate, values)
    fifo_suite   run_conformance(algorithm, aggregate, compiled), fifo_machine
    counting     counting(aggregate): the same aggregate, its calls counted
    monoids      small aggregates, each good at showing one mistake
    strategies   what the suites draw
    store_suite  StoreSuite, store_machine(open_store)
    stores       CountingStore, DelayingStore, FailingStore: around any store

`laws`, `fifo_suite`, `store_suite` and `strategies` need Hypothesis: pip install 'sash[testing]';
`store_suite` needs pytest as well.
"""
