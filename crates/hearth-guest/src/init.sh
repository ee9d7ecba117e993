#!/bin/busybox sh
# The guest's first process: runs /script with its output on the second serial port, then says how
# it ended and what the kernel had to say. Without a script here, files and script come from the host,
# after others may have begun from this point, too.
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t bpf none /sys/fs/bpf
mount -t debugfs none /sys/kernel/debug
mount -t cgroup2 none /sys/fs/cgroup
stty -F /dev/ttyS1 raw -echo
exec >/dev/ttyS1 2>&1
cd /
[ -f /script ] || {
	# What the boot has begun ends; nothing runs beside what pauses the machine.
	sleep 1
	hearth-load pause
	hearth-load | cpio -idu 2>/dev/null
}
mount -t tmpfs none /tmp
cd /tmp
sh -c '
section() {
	echo "@@section $*"
}
. /script
'
echo "@@status $?"
echo "@@kernel-log"
dmesg -r
echo "@@end"
poweroff -f
