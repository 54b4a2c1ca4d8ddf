"""Code Mode: one program instead of many calls, under the same policy.

Layering, lowest first: ``interface``; ``runtime`` (a process for each program); ``config``, ``people``,
``dispatch_log``, ``bridge``, ``telling``; ``run_code``; ``sdk`` (the tools as declarations); ``service``.
"""
