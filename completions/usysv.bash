# SPDX-License-Identifier: MIT
# bash completion for usysv(1)

_usysv_namespaces()
{
	usysv ls --raw --noheadings -o NAME 2>/dev/null
}

_usysv_objects()
{
	usysv ls --json -o ID -- "$1" 2>/dev/null | awk '/"queues"/ { kind = "msg" }
		/"semaphores"/ { kind = "sem" } /"segments"/ { kind = "shm" } /"id"/ { print kind ":" $2 }'
}

_usysv()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command='' i
	local limits='semmsl= semmns= semopm= semmni= msgmax= msgmnb= msgmni= shmmax= shmall= shmmni='

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-*) ;;
		*)
			command=${COMP_WORDS[i]}
			break
			;;
		esac
	done
	if [[ -z $command ]]; then
		COMPREPLY=($(compgen -W 'run ls rm check --help --version' -- "$cur"))
		return
	fi
	case $prev in
	-n | --namespace)
		COMPREPLY=($(compgen -W "$(_usysv_namespaces)" -- "$cur"))
		return
		;;
	-l | --limit)
		COMPREPLY=($(compgen -W "$limits" -- "$cur"))
		[[ ${#COMPREPLY[@]} -gt 0 ]] && compopt -o nospace
		return
		;;
	esac
	case $command in
	run)
		# From the program on it is the program's own matter.
		local at=$((i + 1))
		while ((at < COMP_CWORD)); do
			case ${COMP_WORDS[at]} in
			-n | --namespace | -l | --limit) ((at += 2)) ;;
			--)
				((at++))
				break
				;;
			-*) ((at++)) ;;
			*) break ;;
			esac
		done
		if ((at < COMP_CWORD)) || [[ ${COMP_WORDS[at - 1]} == -- ]]; then
			if declare -F _command_offset >/dev/null; then
				_command_offset "$at"
			else
				COMPREPLY=($(compgen -c -- "$cur"))
			fi
		elif [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W '--namespace --limit --check --help --version --' -- "$cur"))
		else
			COMPREPLY=($(compgen -c -- "$cur"))
		fi
		;;
	ls)
		COMPREPLY=($(compgen -W "--namespace --output --bytes --json --raw --noheadings
			--help --version $(_usysv_namespaces)" -- "$cur"))
		;;
	rm)
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W '--force --help --version' -- "$cur"))
			return
		fi
		local name=''
		for ((i++; i < COMP_CWORD; i++)); do
			[[ ${COMP_WORDS[i]} == -* ]] || { name=${COMP_WORDS[i]}; break; }
		done
		if [[ -z $name ]]; then
			COMPREPLY=($(compgen -W "$(_usysv_namespaces)" -- "$cur"))
		else
			# A colon parts words: what is before it must not be completed again.
			local objects="key: $(_usysv_objects "$name")"
			COMPREPLY=($(compgen -W "$objects" -- "$cur"))
			declare -F __ltrim_colon_completions >/dev/null && __ltrim_colon_completions "$cur"
		fi
		;;
	check)
		COMPREPLY=($(compgen -W "--namespace --repair --help --version $(_usysv_namespaces)" \
			-- "$cur"))
		;;
	esac
}

complete -F _usysv usysv
