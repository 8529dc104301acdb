"""The last hour before every ride, on a pandas table: how many, how long, and which was the longest."""

import pandas as pd

import sash

rides = pd.DataFrame(
    {
        "station": ["Grove St", "Hamilton", "Grove St", "Grove St", "Hamilton"],
        "ended": pd.to_datetime([f"2018-06-01 {clock}" for clock in ("08:00", "08:10", "08:40", "09:30", "12:00")]),
        "minutes": [12.0, 7.5, 31.0, 8.0, 5.0],
        "bike": ["B17", "B04", "B29", "B17", "B29"],
    }
)  # fmt: skip

before_each_ride = sash.window(by="station", order_by="ended").range("1 hour")
spec = before_each_ride.agg(rides=sash.count(), mean=sash.mean("minutes"), longest=sash.argmax("minutes", "bike"))
print(spec(rides).to_string(), end="\n\n")

by_the_clock = sash.window(by="station", order_by="ended").tumbling("1 hour")
print(by_the_clock.agg(rides=sash.count(), minutes=sash.sum("minutes"))(rides).to_string(), end="\n\n")

print(spec.explain(rides))
