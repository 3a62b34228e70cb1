# The host of package.test.ts, run by `unshare` in new mount, process and network namespaces: the files of this host, where all writes go
# to $1/upper, with $2 mounted at /mnt/packages. Ends with its standard input.
set -e
base=$1 packages=$2
mount -t tmpfs scene "$base"
mkdir "$base/upper" "$base/work" "$base/root"
mount -t overlay scene -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$base/root"
cd "$base/root"
mount -t proc proc proc
mount --rbind /dev dev
mount -t sysfs sysfs sys
mount --rbind /sys/fs/cgroup sys/fs/cgroup
for each in run tmp mnt; do mount -t tmpfs scene "$each"; done
# Without its file `auto-update`, dpkg does not read all manual pages of the host again at each installation.
[ ! -d var/lib/man-db ] || mount -t tmpfs scene var/lib/man-db
mkdir mnt/packages mnt/upper mnt/old
mount --bind "$packages" mnt/packages
mount --bind "$base/upper" mnt/upper
pivot_root . mnt/old
umount -l /mnt/old
ip link set lo up
ip link add uplink type veth peer name outside
ip addr add 198.18.0.1/24 dev uplink
ip link set uplink up
ip link set outside up
ip route add default via 198.18.0.2
echo ready
exec cat
