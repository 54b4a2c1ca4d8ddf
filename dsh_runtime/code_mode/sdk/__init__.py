"""The tools as typed declarations of Python, for a model to read and a type checker to check.

Names, schemas and descriptions may come from anywhere: none of them can make the text anything but declarations.

Layering, lowest first: ``words`` (texts within Python); ``types`` (schemas as annotations); ``tool``; ``text``.
"""
