"""What runs outside the host: the template, its wardens, and the programs.

It imports nothing but the standard library, and is started as a package of its own (``child``) by ``python -I -S``:
the host's packages are not there. Of the host's modules, ``order`` and ``wire`` are what both sides know.

Layering, lowest first: ``order``, ``wire``; ``system``; ``landlock``, ``seccomp``; ``confine``; ``values``, ``source``,
``trace``; ``channel``; ``tools``; ``program``; ``files``; ``sandbox``; ``warden``; ``template``.
"""
