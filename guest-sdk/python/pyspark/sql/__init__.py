"""``pyspark.sql``: rows."""

from tidemill import Row

__all__ = ["Row"]
