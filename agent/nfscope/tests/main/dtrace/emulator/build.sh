#!/bin/bash
# Builds the emulator of an NFS server of illumos.
#
#   build.sh DTRACE NFSCOPE DIRECTORY
#
# The operations are those whose probes the script of NFSCOPE names. DIRECTORY gets `emulator` and lib/types.d.
set -euo pipefail
dtrace=$1 nfscope=$2 out=$3
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

mkdir -p "$out/lib"
cp "$here/types.d" "$out/lib/"
script=$("$nfscope" check --show-script nfs)
operations() { grep -oE "^nfsv$1\*:::op-[a-z-]+-done$" <<<"$script" | sed -E 's/.*:::op-(.*)-done/\1/' | sort -u; }
mapfile -t v3 < <(operations 3)
mapfile -t v4 < <(operations 4)
macro() { tr a-z- A-Z_ <<<"$1"; }

kernel_probes() {
  grep -oE '(fbt:[a-z]*:[a-z0-9_]+:(entry|return)|sdt:zfs::[a-z-]+)' | sort -u | while IFS=: read -r provider _ function name; do
    case $provider:$name in
    *:return) arguments= ;;
    *) case $function in
      svc_poll | svc_sendreply | *_done | zio_wait | dmu_tx_wait) arguments='void *a' ;;
      svc_queuereq | svc_getreq | rfs_dispatch | zil_lwb_write_issue) arguments='void *a, void *b' ;;
      '') arguments='void *a, void *b' ;;
      *) arguments='void *a, uint64_t b' ;;
      esac ;;
    esac
    name=${function:+$function-}$name
    printf '\tprobe %s(%s);\n' "${name//-/__}" "$arguments"
  done
}
# Types of an operation's arguments: those that the script reads have their own.
args3() { case $1 in read) echo READ3args ;; write) echo WRITE3args ;; *) echo emu_args_t ;; esac; }
res3() { case $1 in read) echo READ3res ;; write) echo WRITE3res ;; *) echo emu_res_t ;; esac; }
args4() { case $1 in write) echo WRITE4args ;; *) echo emu_args_t ;; esac; }
res4() { case $1 in read) echo READ4res ;; write) echo WRITE4res ;; *) echo emu_res_t ;; esac; }
# A provider's name may not end in a digit; the scripts' nfsv3* matches this one, too.
{
  echo 'provider nfsv3x {'
  for op in "${v3[@]}"; do
    for moment in "start $(args3 "$op")" "done $(res3 "$op")"; do
      printf '\tprobe op__%s__%s(emu_request_t *r, emu_request_t *o, %s *a) : (conninfo_t *r, nfsv3opinfo_t *o, %s *a);\n' \
        "${op//-/__}" "${moment% *}" "${moment#* }" "${moment#* }"
    done
  done
  for moment in start done; do
    printf '\tprobe op__null__%s(emu_request_t *r, emu_request_t *o) : (conninfo_t *r, nfsv3opinfo_t *o);\n' $moment
  done
  printf '};\nprovider nfsv4x {\n'
  # sequence stands for what NFSv4.1 added.
  for op in "${v4[@]}" sequence; do
    for moment in "start $(args4 "$op")" "done $(res4 "$op")"; do
      printf '\tprobe op__%s__%s(emu_request_t *r, %s *a) : (conninfo_t *r, nfsv4opinfo_t *r, %s *a);\n' \
        "${op//-/__}" "${moment% *}" "${moment#* }" "${moment#* }"
    done
  done
  for moment in start:COMPOUND4args done:COMPOUND4res; do
    printf '\tprobe compound__%s(emu_request_t *r, %s *a) : (conninfo_t *r, nfsv4opinfo_t *r, %s *a);\n' \
      ${moment%:*} ${moment#*:} ${moment#*:}
  done
  for moment in start done; do printf '\tprobe null__%s(emu_request_t *r) : (conninfo_t *r);\n' $moment; done
  printf '};\nprovider kernelx {\n'
  # Functions of the kernel, by what all scripts trace of them; with as many arguments as they look at.
  for name in rpc zil txg nfs; do "$nfscope" check --show-script $name; done | kernel_probes
  echo '};'
} >"$out/probes.d"
list() { # list NAME OPERATION...
  local name=$1 op
  shift
  printf '#define %s' "$name"
  for op; do printf ' X(%s, %s)' "${op//-/_}" "$(macro "$op")"; done
  echo
}
generic() { # operations without arguments of their own
  local name=$1 op all=()
  shift
  for op; do case $op in read | write) ;; *) all+=("$op") ;; esac; done
  list "$name" "${all[@]}"
}
{
  list OPERATIONS3 "${v3[@]}"
  list OPERATIONS4 "${v4[@]}"
  generic GENERIC3 "${v3[@]}"
  generic GENERIC4 "${v4[@]}"
} >"$out/operations.h"

cd "$out"
"$dtrace" -L "$out/lib" -h -s probes.d -o probes.h
# Its probes are at fixed addresses, by which publish.py finds them.
gcc -O1 -g -fno-pie -I. -I"$(dirname "$dtrace")/lib/include" -c "$here/emulator.c" -o emulator.o
"$dtrace" -L "$out/lib" -G -s probes.d emulator.o -o probes.o
gcc -no-pie -o emulator emulator.o probes.o -lpthread
