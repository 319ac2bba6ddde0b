"""The programs that may run without asking, one row each, with the flags they may have.

A flag that writes, runs a program, opens a file on its own, follows links out of the folder or never ends is left
out of its row: what is not here is asked about. See options.py for how a row is written.
"""

from errand.engine.permissions.programs.git import GIT
from errand.engine.permissions.programs.options import Program
from errand.engine.permissions.programs.special import (
    check_archive,
    check_awk,
    check_date,
    check_factor,
    check_jq,
    check_no_options_file,
    check_sed,
    check_seq,
    check_sleep,
    read_bracket,
    read_command,
    read_echo,
    read_find,
    read_printf,
    read_tar,
    read_test,
)

_GREP_LONG = (
    "extended-regexp fixed-strings basic-regexp perl-regexp regexp= file=@ ignore-case no-ignore-case word-regexp "
    "line-regexp null-data no-messages invert-match max-count= byte-offset line-number line-buffered with-filename "
    "no-filename label= only-matching quiet silent binary-files= text recursive files-without-match "
    "files-with-matches count initial-tab null before-context= after-context= context= color=? colour=? include= "
    "exclude= exclude-dir= version help"
)
_RG_LONG = (
    "after-context= before-context= context= count count-matches fixed-strings glob= iglob= hidden ignore-case "
    "smart-case case-sensitive invert-match line-number no-line-number max-count= max-depth= files files-with-matches "
    "files-without-match only-matching multiline multiline-dotall pcre2 regexp= file=@ replace= type= type-not= "
    "type-list word-regexp line-regexp no-ignore no-ignore-vcs no-heading heading with-filename no-filename column "
    "color= colors= json stats sort= sortr= trim vimgrep null text quiet max-columns= max-filesize= unrestricted "
    "passthru no-messages no-config version help"
)
_SORT_LONG = (
    "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting "
    "month-sort numeric-sort reverse version-sort check=? key= merge stable field-separator= unique zero-terminated"
)
_LS_LONG = (
    "all almost-all author escape block-size= ignore-backups color=? directory classify=? file-type format= full-time "
    "group-directories-first no-group human-readable si hide= indicator-style= inode ignore= kibibytes "
    "numeric-uid-gid literal hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size "
    "sort= time= time-style= width= context zero version help"
)
_DIFF_LONG = (
    "normal brief report-identical-files context=? unified=? ed rcs side-by-side width= left-column "
    "suppress-common-lines show-c-function show-function-line= label= expand-tabs initial-tab "
    "ignore-case ignore-tab-expansion "
    "ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= text "
    "strip-trailing-cr minimal speed-large-files color=? version help"
)
_FD_LONG = (
    "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path "
    "full-path print0 max-depth= min-depth= exact-depth= exclude= prune type= extension= size= changed-within= "
    "changed-before= color= max-results= search-path=@ quiet list-details version help"
)

_ROWS = (
    # Builtins of the shell, and programs that read nothing.
    Program("echo", read=read_echo),
    Program("printf", read=read_printf),
    Program("true|false|:", "", "", "text"),
    Program("pwd", "LP", "logical physical", "none"),
    Program("test", read=read_test),
    Program("[", read=read_bracket),
    Program("command", read=read_command),
    Program("type", "aptP", "", "text"),
    Program("which", "a", "all", "text"),
    Program("whereis", "bms", "", "text"),
    Program("basename", "as:z", "multiple suffix= zero version help", "text"),
    Program("dirname", "z", "zero version help", "text"),
    Program("seq", "s:w#", "separator= equal-width version help", "text", check=check_seq),
    Program("expr", "", "version help", "text"),
    Program("sleep", "", "version help", "text", check=check_sleep),
    Program("tr", "cCdst", "complement delete squeeze-repeats truncate-set1 version help", "text"),
    Program("factor", "", "version help", "text", check=check_factor),
    Program("numfmt", "d:", "delimiter= field= format= from= to= suffix= padding= grouping header=?", "text"),
    # The machine and who uses it.
    Program(
        "date",
        "uRI?d:r@",
        "date= reference=@ utc universal rfc-email iso-8601=? rfc-3339= version help",
        "text",
        check=check_date,
    ),
    Program("cal|ncal", "13jmyhbM", "", "text"),
    Program("uname", "asnrvmpio", "all kernel-name nodename kernel-release machine operating-system version", "none"),
    Program("arch|nproc|tty|logname|users", "", "all ignore= version help", "none"),
    Program("whoami", "", "version help", "none"),
    Program("id", "agGnruz", "group groups name real user zero version help", "text"),
    Program("groups", "", "version help", "text"),
    Program("who", "abdHlmpqrstTu", "all boot heading count version help", "none"),
    Program("hostname", "sfdiIA", "short fqdn long domain ip-address all-ip-addresses version help", "none"),
    Program("uptime", "psV", "pretty since version help", "none"),
    Program("free", "bkmghtwl", "bytes kibi mebi gibi human total wide lohi si version help", "none"),
    Program("df", "aBhHiklPTt:x:", "all human-readable si inodes local portability print-type total type= output=?"),
    Program("lsblk", "abdfilmnoprstJO", "all bytes fs json list nodeps paths topology", "none"),
    Program("lscpu", "aebcJpxy", "all json parse=? extended=? version help", "none"),
    Program("locale", "am", "all-locales charmaps", "none"),
    # Files and folders.
    Program("ls|dir|vdir", "aAbBcCdfFgGhiI:klmnNopqQrRsStT:uUvw:xXZ1", _LS_LONG),
    Program(
        "tree",
        "adfixspughDFJXACnStUrcvI:P:L:",
        "dirsfirst noreport prune gitignore matchdirs version help",
        clusters="spaced",
    ),
    Program("stat", "fc:t", "file-system format= printf= terse version help"),
    Program("file", "bhikrL0", "brief mime mime-type mime-encoding no-dereference keep-going raw version help"),
    Program(
        "du",
        "abcd:hHklmPsSt:x0",
        "all apparent-size bytes total max-depth= human-readable si summarize "
        "separate-dirs threshold= one-file-system exclude= time=? null version help",
    ),
    Program("readlink", "fenmz", "canonicalize canonicalize-existing canonicalize-missing no-newline zero"),
    Program(
        "realpath",
        "emLPsz",
        "canonicalize-existing canonicalize-missing logical physical strip relative-to=@ "
        "relative-base=@ quiet zero version help",
    ),
    Program("find", read=read_find),
    Program("fd|fdfind", "HIusigFapd:E:t:e:S:0c:q1l", _FD_LONG, "pattern"),
    # The content of files.
    Program("cat", "AbeEnstTuv", "show-all number-nonblank show-ends number squeeze-blank show-tabs version help"),
    Program("tac", "bs:r", "before separator= regex version help"),
    Program("head", "c:n:qvz#", "bytes= lines= quiet silent verbose zero-terminated version help"),
    Program("tail", "c:n:qvz#", "bytes= lines= quiet silent verbose zero-terminated version help"),
    Program("nl", "b:d:f:h:i:l:n:ps:v:w:", "body-numbering= number-format= number-width= version help"),
    Program("wc", "clLmw", "bytes chars lines max-line-length words total= version help"),
    Program("cut", "b:c:d:f:nsz", "bytes= characters= delimiter= fields= complement only-delimited output-delimiter="),
    Program("paste", "d:sz", "delimiters= serial zero-terminated version help"),
    Program("sort", "bdfghiMnrRVcCk:mst:uz", _SORT_LONG),
    Program(
        "uniq",
        "cdDf:is:uw:z",
        "count repeated unique ignore-case skip-fields= skip-chars= check-chars= group=?",
        at_most=1,
    ),
    Program("comm", "123iz", "check-order nocheck-order output-delimiter= total zero-terminated version help"),
    Program("join", "a:e:i1:2:j:o:t:v:z", "ignore-case header check-order nocheck-order zero-terminated"),
    Program("fold", "bsw:", "bytes spaces width= version help"),
    Program("fmt", "cst:uw:p:g:", "crown-margin split-only uniform-spacing width= prefix= goal= version help"),
    Program("expand|unexpand", "it:a", "initial tabs= all first-only version help"),
    Program("column", "ts:c:nxdeJN:R:o:", "table separator= output-separator= table-columns= json"),
    Program("rev", "", "version help"),
    Program("tsort", "", "version help"),
    Program("od", "A:bcdfilosxj:N:S:t:vw?", "address-radix= skip-bytes= read-bytes= strings=? format= version help"),
    Program("xxd", "abc:eEg:il:o:ps:u", "", at_most=1, clusters="single"),
    Program("hexdump|hd", "bcCdn:os:vx", "canonical length= skip= no-squeezing"),
    Program(
        "strings",
        "an:t:e:wof",
        "all bytes= radix= encoding= print-file-name version help",
        check=check_no_options_file,
    ),
    Program("base64|base32", "dw:i", "decode wrap= ignore-garbage version help", at_most=1),
    Program("md5sum|sha1sum|sha224sum|sha256sum|sha384sum|sha512sum|b2sum", "btz", "binary text tag zero version help"),
    Program("cksum|sum", "rs", "sysv algorithm= untagged version help"),
    Program("shasum", "a:bt", "algorithm= binary text"),
    Program("diff", "qscC:uU:nywW:pF:tTiEZbBI:aded", _DIFF_LONG, takes_folders=False),
    Program("cmp", "bi:ln:s", "print-bytes ignore-initial= verbose bytes= quiet silent version help"),
    Program(
        "grep|egrep|fgrep",
        "EFGPe:f@iywxzsvVm:bnHhoqaIrLlcTZA:B:C:U#",
        _GREP_LONG,
        "pattern",
        pattern_flags="e f regexp file",
    ),
    Program(
        "rg",
        "A:B:C:cFg:iSsvnNm:loUPe:f@r:t:T:wxHIqu0pVhj:d:M:a",
        _RG_LONG,
        "pattern",
        pattern_flags="e f regexp file files type-list",
    ),
    Program(
        "sed",
        "nErsuze:l:",
        "quiet silent expression= regexp-extended separate unbuffered null-data",
        "pattern",
        pattern_flags="e expression",
        check=check_sed,
    ),
    Program("awk|gawk|mawk", "F:v:", "field-separator= assign=", "pattern", check=check_awk),
    Program(
        "jq",
        "rcSesnMCja",
        "raw-output compact-output sort-keys exit-status slurp null-input monochrome-output "
        "color-output join-output ascii-output raw-input tab indent= arg== argjson== slurpfile==@ rawfile==@ version",
        "pattern",
        check=check_jq,
    ),
    Program("iconv", "f:t:lcs", "from-code= to-code= list"),
    # Archives and compiled files.
    Program("tar", read=read_tar),
    Program("unzip", "lvZ1tqUp", "", requires="l v Z p", check=check_archive),
    Program("zipinfo", "12smlvhMtTzZ", ""),
    Program("gzip", "lv", "list verbose", requires="l list"),
    Program("zcat|bzcat|xzcat|zstdcat", "", ""),
    Program(
        "nm",
        "aABCDfgnopPrsSu",
        "debug-syms defined-only demangle=? dynamic extern-only print-size undefined-only",
        check=check_no_options_file,
    ),
    Program(
        "readelf",
        "aAdehlnrsSuVW",
        "all file-header program-headers sections symbols dynamic notes wide",
        check=check_no_options_file,
    ),
    Program("size", "ABdotx", "format= radix= totals", check=check_no_options_file),
    # Listing commands of package managers, and versions. What they print must not depend on files of the folder.
    Program("python|python2|python3|pypy3|uv", "V", "version", "none", requires="V version"),
    Program("node|ruby|perl|php|docker", "v", "version", "none", requires="v version"),
    Program("curl|wget|ssh|tmux|emacs", "V", "version", "none", requires="V version"),
    Program(
        "gcc|g++|clang|cc|make|cmake|java|javac|bash|zsh|vim|openssl|rsync|tsc|deno|psql|terraform|gh",
        "",
        "version",
        "none",
        requires="version",
    ),
    Program("pip|pip3", "V", "version", "none", requires="V version"),
    Program("pip list|pip3 list", "le", "local user editable format= not-required exclude=", "none"),
    Program("pip show|pip3 show", "f", "files", "text"),
    Program("pip freeze|pip3 freeze", "l", "local user all exclude=", "none"),
    Program("pip check|pip3 check", "", "", "none"),
    Program("npm|yarn|pnpm", "v", "version", "none", requires="v version", needs_trust=True),
    Program("npm ls|npm list", "agl", "all depth= global json long parseable omit= include=", "text", needs_trust=True),
    Program("npm root", "g", "global", "none", needs_trust=True),
    Program("npm prefix", "g", "global", "none", needs_trust=True),
    Program("cargo|rustc|rustup", "Vv", "version list verbose", "none", requires="V version list", needs_trust=True),
    Program("cargo version", "v", "verbose", "none", needs_trust=True),
    Program("cargo locate-project", "", "workspace message-format=", "none", needs_trust=True),
    Program(
        "cargo tree",
        "ie:p:",
        "locked frozen offline invert= depth= edges= package= duplicates all-features "
        "no-default-features features= prefix= charset= target=",
        "none",
        requires="frozen",
        needs_trust=True,
    ),
    Program(
        "cargo metadata", "", "frozen no-deps format-version=", "none", requires="frozen no-deps", needs_trust=True
    ),
    Program("go version", "", "", "none", needs_trust=True),
    Program("go help", "", "", "text", needs_trust=True),
    Program("dpkg", "l", "list", "text", requires="l list"),
    Program("dpkg-query", "lW", "list show", "text", requires="l W list show"),
)


def _by_name() -> dict[str, tuple[Program, ...]]:
    programs: dict[str, tuple[Program, ...]] = {}
    for row in (*_ROWS, *GIT):
        for name in row.names.split("|"):
            programs[name] = (*programs.get(name, ()), row)
    return programs


# The rows of each program; a subcommand is found by both its words.
PROGRAMS = _by_name()
