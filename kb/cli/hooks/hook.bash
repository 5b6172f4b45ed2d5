# kb: remembers the last command that failed, for `kb last`. Prints, writes and sends nothing.
# To switch it on: eval "$(kb hook bash)" in ~/.bashrc. A command that history leaves out is not remembered.
__kb_prompt() {
  local code=$? entry number text
  entry=$(HISTTIMEFORMAT='' builtin history 1 2>/dev/null)
  entry=${entry#"${entry%%[![:space:]]*}"}
  number=${entry%%[![:digit:]]*}
  text=${entry#"$number"}
  text=${text#"${text%%[![:space:]*]*}"}
  if [[ -n ${__kb_number-} && -n $text && ( $number != "$__kb_number" || $text == "${__kb_command-}" ) ]]; then
    if (( code == 0 || code == 130 || code == 131 || (code >= 146 && code <= 149) )) || [[ $text == kb || $text == kb\ * ]]; then
      if [[ $number != "$__kb_number" && -z ${__kb_next-} && $text != kb\ last* ]]; then __kb_next=${text:0:4096}; fi
    else
      __kb_command=${text:0:4096} __kb_code=$code __kb_next=''
    fi
  fi
  __kb_number=${number:-0}
  return "$code"
}
function kb {
  if [[ ${1-} == last ]]; then
    KB_LAST_COMMAND=${__kb_command-} KB_LAST_CODE=${__kb_code-} KB_LAST_NEXT=${__kb_next-} command kb "$@"
  else
    command kb "$@"
  fi
}
__kb_on=__kb_prompt
if [[ "${PROMPT_COMMAND[*]-}" != *__kb_on* ]]; then
  if [[ "$(declare -p PROMPT_COMMAND 2>/dev/null)" == "declare -a"* ]]; then
    PROMPT_COMMAND=('${__kb_on-}' "${PROMPT_COMMAND[@]}")
  else
    PROMPT_COMMAND='${__kb_on-}'${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
  fi
fi
