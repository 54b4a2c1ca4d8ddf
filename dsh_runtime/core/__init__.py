"""Contexts, fibers, effects, services, events, scopes: everything that a host of plugins needs, and nothing of tools.

Layering, lowest first: ``errors``, ``lifecycle``; ``effects``, ``services``; ``plugins``, ``ledger``, ``scopes``;
``events``, ``chain``; ``context``; ``fiber``; ``kernel``.
"""
