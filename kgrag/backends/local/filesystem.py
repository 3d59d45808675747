"""Where embedded stores may live: memory-mapped files and locks need a local disk."""

from __future__ import annotations

from pathlib import Path

from kgrag.errors import UnsupportedFilesystemError

NETWORK_FILESYSTEMS = frozenset(
    {
        *("nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "9p", "afs", "ncpfs", "coda", "efs", "davfs"),
        *("ceph", "glusterfs", "lustre", "gpfs", "beegfs", "beegfs_nodev", "pvfs2", "orangefs", "ocfs2", "gfs2", "wekafs", "panfs"),
        *("fuse.ceph", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.gcsfuse", "fuse.goofys"),
        *("fuse.mount-s3", "fuse.mountpoint-s3", "fuse.blobfuse", "fuse.blobfuse2", "fuse.juicefs", "fuse.davfs", "fuse.mfs"),
    }
)


def filesystem_of(folder: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """Type of the file system that holds, or would hold, ``folder``; empty where the platform does not say."""
    try:
        table = mounts.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    place = folder.resolve()
    best, kind = -1, ""
    for line in table.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = Path(_unescaped(parts[1]))
        # Later mounts hide earlier ones at the same place.
        if len(point.parts) >= best and (place == point or point in place.parents):
            best, kind = len(point.parts), parts[2]
    return kind


def require_local(folder: Path, mounts: Path = Path("/proc/mounts")) -> None:
    """Raises UnsupportedFilesystemError on a network file system."""
    kind = filesystem_of(folder, mounts)
    if kind in NETWORK_FILESYSTEMS:
        raise UnsupportedFilesystemError(
            f"{folder} is on a network file system ({kind}), where embedded stores would lose data.",
            subject=str(folder),
            remedy="Set KGRAG_HOME to a folder on a local disk, or use the server backends.",
        )


def _unescaped(field: str) -> str:
    for code, char in ((r"\040", " "), (r"\011", "\t"), (r"\012", "\n"), (r"\134", "\\")):
        field = field.replace(code, char)
    return field
