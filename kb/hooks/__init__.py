"""Here is somebody else's Python program; when it fails with something known, say so, and otherwise do not be there."""

__all__: list[str] = []
