# kb: remembers the last command that failed, for `kb last`. Prints, writes and sends nothing.
# To switch it on: kb hook fish | source in ~/.config/fish/config.fish. What begins with a
# space is not remembered.
function __kb_preexec --on-event fish_preexec
    if set -q __kb_command[1]; and not set -q __kb_next[1]; and not string match -q -- 'kb last*' $argv[1]
        set -g __kb_next (string sub -l 4096 -- $argv[1] | string collect)
    end
end
function __kb_postexec --on-event fish_postexec
    set -l code $status
    if not contains $code 0 130 131 146 147 148 149; and not string match -qr '^(\s|$|kb(\s|$))' -- "$argv[1]"
        set -g __kb_command (string sub -l 4096 -- $argv[1] | string collect)
        set -g __kb_code $code
        set -g __kb_next
    end
end
function kb
    if test "$argv[1]" = last
        set -lx KB_LAST_COMMAND "$__kb_command"
        set -lx KB_LAST_CODE "$__kb_code"
        set -lx KB_LAST_NEXT "$__kb_next"
        command kb $argv
    else
        command kb $argv
    end
end
