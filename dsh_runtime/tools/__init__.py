"""Tools: their definitions, the registry, and the pipeline that every call goes through.

Layering, lowest first: ``definition``, ``names``; ``execution``, ``failures``, ``body``; ``registry``, ``policy``;
``results``, ``presentation``; ``dispatch``; ``call``; ``machine``; ``batch``; ``runtime``. ``define`` is the author's
way in.
"""
