# kb: remembers the last command that failed, for `kb last`. Prints, writes and sends nothing.
# To switch it on: eval "$(kb hook zsh)" in ~/.zshrc. A command with a space before it is not remembered.
typeset -g __kb_typed __kb_command __kb_code __kb_next
__kb_preexec() {
  emulate -L zsh
  __kb_typed=${1[1,4096]}
  [[ $1 != ' '* ]] || __kb_typed=''
  if [[ -n $__kb_command && -z $__kb_next && $1 != kb\ last* ]]; then __kb_next=$__kb_typed; fi
}
__kb_precmd() {
  local code=$?
  emulate -L zsh
  if (( code != 0 && code != 130 && code != 131 && (code < 146 || code > 149) )) &&
    [[ -n $__kb_typed && $__kb_typed != kb && $__kb_typed != kb\ * ]]; then
    __kb_command=$__kb_typed __kb_code=$code __kb_next=''
  fi
  __kb_typed=''
  return $code
}
function kb {
  if [[ ${1-} == last ]]; then
    KB_LAST_COMMAND=$__kb_command KB_LAST_CODE=$__kb_code KB_LAST_NEXT=$__kb_next command kb "$@"
  else
    command kb "$@"
  fi
}
autoload -Uz add-zsh-hook
add-zsh-hook preexec __kb_preexec
add-zsh-hook precmd __kb_precmd
