"""Published checkpoints as bundles: ``python -m export.import_checkpoint FORMAT FILE --vocabulary V -o BUNDLE``.

A published format is one module and one line in :data:`export.import_checkpoint.__main__.FORMATS`.
"""
