"""Approval: a person is asked about a call before it runs.

Layering, lowest first: ``race``, ``describe``, ``desk``; ``asking``; ``service``.
"""
