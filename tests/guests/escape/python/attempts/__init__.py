"""What is tried, by name: functions that answer what they got, or raise."""
