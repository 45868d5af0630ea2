#!/bin/sh
# Prints what the library reads of a host's /sys, as a text that SysfsTree builds a tree from again:
#
#   sh record.sh > my-host.txt
#
# A line in brackets is a folder, "name = value" a file in it, "name -> target" a link. bus/pci/devices is left out,
# because it follows from the devices. Nothing but the kernel's description of PCI, RDMA and network devices is read.
set -eu
cd "${1:-/sys}"
root=$(pwd -P)

# Prints a folder and those of the named entries that it has and that can be read.
show() {
    folder=$1
    shift
    echo "[$folder]"
    for name; do
        if [ -L "$folder/$name" ]; then
            echo "$name -> $(readlink "$folder/$name")"
        elif [ -f "$folder/$name" ] && value=$(cat "$folder/$name" 2>/dev/null); then
            echo "$name = $value"
        fi
    done
}

# The real path below the root of something in a class.
real() {
    path=$(readlink -f "$1")
    echo "${path#"$root"/}"
}

show devices/system/node online
for device in bus/pci/devices/*; do
    case $(cat "$device/class") in
        0x03* | 0x02*) show "$(real "$device")" class vendor numa_node driver physfn ;;
        0x0604*) show "$(real "$device")" numa_node ;;
    esac
done
for kind in infiniband net; do
    [ -d "class/$kind" ] || continue
    # shellcheck disable=SC2046 # names of devices hold no blanks
    show "class/$kind" $(ls "class/$kind")
done
for hca in class/infiniband/*; do
    [ -d "$hca" ] || continue
    folder=$(real "$hca")
    show "$folder" device
    for port in "$folder"/ports/*; do
        show "$port" link_layer state phys_state rate
        # Names of the interfaces that the port's addresses belong to.
        show "$port/gid_attrs/ndevs" 0 1 2 3
    done
done
for interface in class/net/*; do
    [ -d "$interface" ] || continue
    folder=$(real "$interface")
    show "$folder" operstate speed master device
    if [ -d "$folder/bonding" ]; then
        show "$folder/bonding" mode slaves
    fi
done
