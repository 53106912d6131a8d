#!/bin/sh
# Written by agentguard, which replaces it: edit the tracked directory instead.
# Runs the approved copy of the hook @NAME@, and nothing while the work tree
# holds a hooks directory with something in it that was not approved.
ag__approved=@APPROVED@
ag__tracked=@TRACKED@
ag__changed=

ag__refuse() {
	# What the work tree says is shown with nothing in it that a terminal obeys.
	printf '%s\n' "agentguard: @NAME@ was not run: $1" | LC_ALL=C tr -c '[:print:]\n' '?' >&2
	printf '%s\n' 'agentguard: hint: see it, and approve it if it is wanted: agentguard hooks approve' >&2
	exit 1
}

[ -d "$ag__approved" ] || ag__refuse 'the approved copy is gone'
if [ -L "$ag__tracked" ]; then
	ag__refuse "$ag__tracked is a symbolic link"
elif [ -e "$ag__tracked" ]; then
	[ -d "$ag__tracked" ] || ag__refuse "$ag__tracked is not a directory"
	ag__found=$(
		PATH=/usr/bin:/bin:$PATH
		LC_ALL=C
		export PATH LC_ALL
		exec diff -rq -- "$ag__approved" "$ag__tracked" </dev/null 2>&1
	)
	[ $? -le 1 ] || ag__refuse "$ag__tracked cannot be compared: $ag__found"
	set -f
	IFS='
'
	for ag__line in $ag__found; do
		case $ag__line in
		'Only in /'*) ;; # approved and missing here: the approved copy runs
		*) ag__changed="$ag__changed
  $ag__line" ;;
		esac
	done
	unset IFS
	set +f
fi
[ -z "$ag__changed" ] || ag__refuse "$ag__tracked is not as approved:$ag__changed"

[ -x "$ag__approved"/@NAME@ ] || exit 0
exec "$ag__approved"/@NAME@ "$@"
