"""PySpark's names for what a stateful processor uses, so that a ported module keeps its import lines.

This folder is on the path of builds and tests only. It is no part of the distribution of ``tidemill``, so nothing
shadows a PySpark that is installed.
"""
