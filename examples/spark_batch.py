"""The last hour before every ride, on a Spark table: the same declaration as on pandas, one shuffle, one sort."""

import sash

spark = sash.spark.session()  # a local Spark; on a cluster, use the session you have

rides = spark.createDataFrame(
    [
        ("Grove St", "2018-06-01 08:00:00", 12.0, "B17"),
        ("Hamilton", "2018-06-01 08:10:00", 7.5, "B04"),
        ("Grove St", "2018-06-01 08:40:00", 31.0, "B29"),
        ("Grove St", "2018-06-01 09:30:00", 8.0, "B17"),
        ("Hamilton", "2018-06-01 12:00:00", 5.0, "B29"),
    ],
    "station string, ended string, minutes double, bike string",
).selectExpr("station", "CAST(ended AS timestamp) AS ended", "minutes", "bike")

w = sash.window(by="station", order_by="ended")
hour = w.range("1 hour").agg(rides=sash.count(), mean=sash.mean("minutes"), longest=sash.argmax("minutes", "bike"))
day = w.range("1 day").agg(rides_today=sash.count())

rides.transform(sash.together(hour, day)).orderBy("station", "ended").show()
w.tumbling("1 hour").agg(rides=sash.count())(rides).orderBy("station", "ended").show()
print(hour.explain(rides))
spark.stop()
