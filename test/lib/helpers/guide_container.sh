# Container for test/guides/containers.sh: runs a command as process 1 of its own
# namespaces. The root is read-only; only the folder VOLUME and a tmpfs at VOLUME/tmpfs
# are writable. The command has no capabilities and no perf_event_open.
#
# usage: unshare --user --map-root-user --mount --pid --ipc --net --fork \
#          bash guide_container.sh VOLUME COMMAND ARG...
#
# Status 125: the kernel, or a container around us, forbids it.

volume=$1
shift

refuse() {
  echo "guide_container: $*" >&2
  exit 125
}

mount --make-rprivate / || refuse "mount namespace"
mount --bind "$volume" "$volume" || refuse "bind mount"
mount -t proc proc /proc || refuse "proc"
# Make all other mounts read-only, /dev too. Like in a container, some are locked.
while read -r _ _ _ _ point _; do
  case $point in
  "$volume" | /proc | /proc/*) ;;
  *) mount -o remount,bind,ro "$point" 2>/dev/null || : ;;
  esac
done </proc/self/mountinfo
mkdir -p "$volume/tmpfs"
mount -t tmpfs -o size=8m tmpfs "$volume/tmpfs" || refuse "tmpfs"
cd "$PWD" || refuse "folder"  # Enters the new mount.
for folder in /tmp "$SYSPROF_BUILD"; do
  ! touch "$folder/.guide" 2>/dev/null || {
    rm -f "$folder/.guide"
    refuse "$folder can be written"
  }
done
exec setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs \
  "$LUAJIT" -E "$SYSPROF_SOURCE/test/lib/helpers/guide_seccomp.lua" "$@"
