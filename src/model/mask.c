/* SPDX-License-Identifier: MIT */
/*
 * Owns the rules for recognizing secrets. Pure, one pass, no allocation; the input is untrusted
 * text.
 *
 * There are two kinds of boundaries. A value that starts an argument extends to its end, spaces
 * included, because nothing can leak across arguments. An argument may contain a whole shell
 * command, so inside of it each word is examined, and quotes delimit a value.
 */
#include "model/mask.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A user part of a URL this long is taken for a token. */
#define TOKEN_AS_USER_LEN 16

struct span {
    const char *text;
    size_t len;
};

struct writer {
    char *buffer;
    size_t size, len;
};

struct scan {
    struct span arg;
    size_t pos;
    bool cut;               /* the argument is the last one and truncated */
    bool mask_next;         /* the next word, or argument, is a secret */
    bool unless_plain;      /* with mask_next: not if it is a plain value or an option */
    bool unless_option;     /* with mask_next: not if it is an option */
    bool mask_pair;         /* the next word is user:password */
    bool mask_percent;      /* the next is user%password */
    bool mask_comma;        /* the next is user,password */
    unsigned mask_in_words; /* the word that is so many words away is a secret; 0: none */
    unsigned programs;      /* enum program, seen so far */
    struct writer *out;
};

/* --------------------------------------------------------------------- text */

static void put(struct writer *out, const char *text, size_t len)
{
    if (out->size == 0)
        return;
    size_t room = out->size - 1 - out->len;
    size_t fits = len < room ? len : room;
    memcpy(out->buffer + out->len, text, fits);
    out->len += fits;
    out->buffer[out->len] = '\0';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_key_char(char c)
{
    return is_alnum(c) || c == '-' || c == '_' || c == '.';
}

static bool same(struct span span, const char *text)
{
    if (span.len != strlen(text))
        return false;
    for (size_t i = 0; i < span.len; i++)
        if (lower(span.text[i]) != text[i])
            return false;
    return true;
}

static bool starts_with(struct span span, const char *text)
{
    size_t len = strlen(text);
    return span.len >= len && same((struct span){span.text, len}, text);
}

static bool any_of(struct span span, const char *const *texts)
{
    for (; *texts; texts++)
        if (same(span, *texts))
            return true;
    return false;
}

/* The byte at an offset from the position, or NUL past the end. */
static char at(const struct scan *scan, size_t offset)
{
    return offset < scan->arg.len - scan->pos ? scan->arg.text[scan->pos + offset] : '\0';
}

static void copy(struct scan *scan, size_t len)
{
    put(scan->out, scan->arg.text + scan->pos, len);
    scan->pos += len;
}

static void mask(struct scan *scan, size_t len)
{
    if (len > 0)
        put(scan->out, EW_MASK_TEXT, sizeof EW_MASK_TEXT - 1);
    scan->pos += len;
}

/* ------------------------------------------------------------- secret names */

/* Secret as any part of a name; a-b_c.d and aB consist of several parts. */
static const char *const secret_parts[] = {
    "pass",      "pwd",        "pw",        "passin",  "passout",   "passcode", "creds",
    "auth",      "sig",        "pin",       "otp",     "psk",       "jwt",      "bearer",
    "accesskey", "privatekey", "signature", "authkey", "storepass", "keypass",  "dbpass",
    "userpass",  "rootpass",   "bindpw",    "rootpw",  "mnemonic",  NULL,
};
/* Secret also at the end of a part: dbpassword, mytoken. */
static const char *const secret_ends[] = {
    "password", "passwd",     "passphrase",  "secret", "token",
    "apikey",   "credential", "credentials", NULL,
};
/* "key" is a secret only after one of these; alone it may be a sort key. */
static const char *const key_kinds[] = {
    "api",     "access",  "private", "encryption", "auth",   "account", "shared",
    "license", "licence", "master",  "signing",    "client", "service", NULL,
};
static const char *const header_parts[] = {"authorization", "cookie", NULL};

/* A key of these kinds names a column, an object or the public half, not a secret. */
static const char *const open_key_kinds[] = {
    "public", "pub",   "sort",  "primary", "foreign", "partition", "row",  "hash",
    "object", "order", "group", "join",    "cache",   "index",     "host", NULL,
};

static bool ends_with(struct span span, const char *text)
{
    size_t len = strlen(text);
    return span.len >= len && same((struct span){span.text + span.len - len, len}, text);
}

static bool ends_with_any(struct span span, const char *const *texts)
{
    for (; *texts; texts++)
        if (ends_with(span, *texts))
            return true;
    return false;
}

/* Splits off the next part of a name; in camelCase a capital starts a new part. */
static bool next_part(struct span *name, struct span *ret_part)
{
    while (name->len > 0 && !is_alnum(*name->text)) {
        name->text++;
        name->len--;
    }
    size_t len = 0;
    while (len < name->len && is_alnum(name->text[len])) {
        bool hump = len > 0 && name->text[len] != lower(name->text[len]) &&
                    name->text[len - 1] == lower(name->text[len - 1]);
        if (hump)
            break;
        len++;
    }
    *ret_part = (struct span){name->text, len};
    name->text += len;
    name->len -= len;
    return len > 0;
}

/* password2, tokens, secret_1: the name without a number or a plural at its end. */
static struct span stem(struct span part)
{
    size_t len = part.len;
    while (len > 0 && part.text[len - 1] >= '0' && part.text[len - 1] <= '9')
        len--;
    if (len > 3 && lower(part.text[len - 1]) == 's' && lower(part.text[len - 2]) != 's')
        len--;
    return len > 0 ? (struct span){part.text, len} : part;
}

static bool is_upper_name(struct span name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.text[i] != '_' && name.text[i] != lower(name.text[i]))
            continue;
        else if (name.text[i] != '_' && !(name.text[i] >= '0' && name.text[i] <= '9'))
            return false;
    return true;
}

enum secrecy {
    NO_SECRET,
    SECRET_UNLESS_PLAIN, /* a count, a list of columns or a path is not a secret */
    SECRET,
};

/* KEY and …_KEY in capitals are environment variables; --key alone may sort a list. */
static enum secrecy secrecy_of(struct span name)
{
    struct span rest = name, part, before = {NULL, 0};
    enum secrecy found = NO_SECRET;
    while (next_part(&rest, &part)) {
        struct span bare = stem(part);
        if (any_of(part, secret_parts) || ends_with_any(part, secret_ends) ||
            ends_with_any(part, header_parts))
            return SECRET;
        if (any_of(bare, secret_parts) || ends_with_any(bare, secret_ends))
            found = SECRET_UNLESS_PLAIN;
        if (same(bare, "key")) {
            if (is_upper_name(name) || (before.text != NULL && any_of(before, key_kinds)))
                return SECRET;
            if (before.text == NULL || !any_of(before, open_key_kinds))
                found = SECRET_UNLESS_PLAIN;
        }
        before = part;
    }
    return found;
}

static bool is_header_name(struct span name)
{
    struct span part;
    while (next_part(&name, &part))
        if (ends_with_any(part, header_parts))
            return true;
    return false;
}

/* ------------------------------------------------------------------- values */

static bool ends_value(char c)
{
    return is_blank(c) || c == '\0' || strchr("&;,\"')}]|<>", c) != NULL;
}

/* Length of the value at the position: up to its closing quote or a field separator. */
static size_t value_len(const struct scan *scan)
{
    size_t len = 0, left = scan->arg.len - scan->pos;
    char quote = at(scan, 0);
    if (quote == '"' || quote == '\'') {
        for (len = 1; len < left && at(scan, len) != quote; len++)
            if (at(scan, len) == '\\')
                len++;
        return len < left ? len + 1 : left;
    }
    while (len < left && !ends_value(at(scan, len)))
        len++;
    return len;
}

/* 512, 2,3n or a path: not a secret although the name could be one of a secret. */
static bool is_plain_value(const char *text, size_t len)
{
    static const char *const endings[] = {".pem", ".key", ".crt", ".pub", ".json", ".txt", NULL};
    bool digit = false;
    if (len > 0 && strchr("/.~", text[0]) != NULL)
        return true;
    if (ends_with_any((struct span){text, len}, endings))
        return true;
    for (size_t i = 0; i < len; i++) {
        if (text[i] >= '0' && text[i] <= '9')
            digit = true;
        else if (strchr(".,nrhgMVdibfR", text[i]) == NULL)
            return false;
    }
    return digit && len <= 12;
}

/* "Bearer x" keeps its first word; the rest of a header, up to the enclosing quote, is secret. */
static void mask_header(struct scan *scan, char quote)
{
    static const char *const schemes[] = {"bearer", "basic", "token", "digest", "negotiate", NULL};
    size_t word = 0, len = 0, left = scan->arg.len - scan->pos;
    while (word < left && is_alnum(at(scan, word)))
        word++;
    if (any_of((struct span){scan->arg.text + scan->pos, word}, schemes) && at(scan, word) == ' ') {
        copy(scan, word + 1);
        left -= word + 1;
    }
    bool quoted = quote == '"' || quote == '\'';
    while (len < left && at(scan, len) != '\n' && !(quoted && at(scan, len) == quote))
        len++;
    mask(scan, len);
}

/* Masks the password of user:password. False if it is something else. */
static bool mask_pair(struct scan *scan, size_t len)
{
    size_t user = 0;
    while (user < len && at(scan, user) != ':' && at(scan, user) != '=')
        user++;
    if (user == len || at(scan, user) != ':' || at(scan, 0) == '-')
        return false;
    copy(scan, user + 1);
    mask(scan, len - user - 1);
    return true;
}

/* --------------------------------------------------------------------- URLs */

static bool all_digits(const struct scan *scan, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (at(scan, i) < '0' || at(scan, i) > '9')
            return false;
    return true;
}

/*
 * The text after "://": user:password@host. A password may contain '@', and some contain '/'
 * although it should be written %2F. So if there is neither '@' before the first '/' nor a port, a
 * later '@' counts.
 */
static void mask_authority(struct scan *scan)
{
    size_t left = scan->arg.len - scan->pos, end = 0, word = 0;
    size_t sign = SIZE_MAX, late_sign = SIZE_MAX, colon = SIZE_MAX;
    while (end < left && !is_blank(at(scan, end)) && !strchr("/?#\"'", at(scan, end)))
        end++;
    while (word < left && !is_blank(at(scan, word)) && !strchr("\"'", at(scan, word)))
        word++;
    for (size_t i = 0; i < word; i++) {
        if (at(scan, i) == '@' && i < end)
            sign = i;
        if (at(scan, i) == '@')
            late_sign = i;
        if (at(scan, i) == ':' && colon == SIZE_MAX && i < end)
            colon = i;
    }
    bool no_port = colon != SIZE_MAX && !all_digits(scan, colon + 1, end);
    if (sign == SIZE_MAX && no_port)
        sign = late_sign;
    if (sign == SIZE_MAX && no_port && scan->cut && word == left)
        sign = left; /* the '@' may have been truncated */
    if (sign == SIZE_MAX)
        return;
    if (colon < sign)
        copy(scan, colon + 1);
    else if (sign < TOKEN_AS_USER_LEN)
        return; /* a user name alone, as in ssh://git@host */
    mask(scan, colon < sign ? sign - colon - 1 : sign);
}

/* ------------------------------------------------------------ tokens by shape */

struct shape {
    const char *prefix;
    size_t min_len; /* of what follows */
};

static const struct shape shapes[] = {
    {"AKIA", 16},
    {"ASIA", 16},
    {"AIza", 30},
    {"ghp_", 20},
    {"gho_", 20},
    {"ghu_", 20},
    {"ghs_", 20},
    {"ghr_", 20},
    {"hf_", 20},
    {"glpat-", 16},
    {"xoxb-", 10},
    {"xoxp-", 10},
    {"xoxa-", 10},
    {"xoxr-", 10},
    {"xapp-", 10},
    {"sk-", 20},
    {"sk_live_", 10},
    {"sk_test_", 10},
    {"rk_live_", 10},
    {"rk_test_", 10},
    {"npm_", 20},
    {"pypi-", 20},
    {"ya29.", 20},
    {"hvs.", 10},
    {"hvb.", 10},
    {"GOCSPX-", 10},
    {"dop_v1_", 16},
    {"SG.", 16},
    {"eyJ", 30},
    {"github_pat_", 20},
    {"AGE-SECRET-KEY-", 16},
};

/* The length of a known token at the position, or 0. */
static size_t token_len(const struct scan *scan)
{
    size_t left = scan->arg.len - scan->pos, run = 0;
    while (run < left && is_key_char(at(scan, run)))
        run++;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        size_t prefix = strlen(shapes[i].prefix);
        bool whole = run >= prefix + shapes[i].min_len || (scan->cut && run == left);
        if (whole && run > prefix &&
            memcmp(scan->arg.text + scan->pos, shapes[i].prefix, prefix) == 0)
            return run;
    }
    return 0;
}

/* -------------------------------------------------- programs with short options */

/* How a program takes a password in a short option or argument. */
enum program {
    MYSQL = 1u << 0,      /* -pSECRET; -p alone prompts */
    SSHPASS = 1u << 1,    /* -pSECRET, -p SECRET; also mongosh, mycli */
    SEVENZIP = 1u << 2,   /* -pSECRET */
    REDIS = 1u << 3,      /* -a SECRET */
    LOGIN = 1u << 4,      /* docker login -p SECRET; elsewhere its -p is a port */
    LDAP = 1u << 5,       /* -w SECRET */
    SAMBA = 1u << 6,      /* -U user%SECRET */
    ZIP = 1u << 7,        /* -P SECRET; also sqlcmd, bcp */
    ORACLE = 1u << 8,     /* user/SECRET@database */
    CURL = 1u << 9,       /* -uuser:SECRET, -b COOKIES */
    HTPASSWD = 1u << 10,  /* -b FILE USER SECRET */
    LOGGED_IN = 1u << 11, /* the word `login` itself */
    OPENSSL = 1u << 12,   /* -k SECRET, -K SECRET: alone, because -key is a file */
    WORDS = 1u << 13,     /* password SECRET, without a dash */
    SNMP = 1u << 14,      /* -A SECRET, -X SECRET, -c SECRET */
    LFTP = 1u << 15,      /* -u user,SECRET */
    RDP = 1u << 16,       /* /p:SECRET */
};

static unsigned program_of(struct span word)
{
    static const struct {
        const char *name;
        unsigned program;
    } known[] = {
        {"mysql", MYSQL},
        {"mariadb", MYSQL},
        {"mysqldump", MYSQL},
        {"mysqladmin", MYSQL},
        {"mysqlimport", MYSQL},
        {"mysqlsh", MYSQL},
        {"mariadb-dump", MYSQL},
        {"sshpass", SSHPASS},
        {"mongo", SSHPASS},
        {"mongosh", SSHPASS},
        {"mongodump", SSHPASS},
        {"mongorestore", SSHPASS},
        {"mongoexport", SSHPASS},
        {"mongoimport", SSHPASS},
        {"mycli", SSHPASS},
        {"7z", SEVENZIP},
        {"7za", SEVENZIP},
        {"7zr", SEVENZIP},
        {"7zz", SEVENZIP},
        {"redis-cli", REDIS},
        {"valkey-cli", REDIS},
        {"docker", LOGIN},
        {"podman", LOGIN},
        {"nerdctl", LOGIN},
        {"buildah", LOGIN},
        {"skopeo", LOGIN},
        {"helm", LOGIN},
        {"az", LOGIN},
        {"login", LOGGED_IN},
        {"ldapsearch", LDAP},
        {"ldapmodify", LDAP},
        {"ldapadd", LDAP},
        {"ldapdelete", LDAP},
        {"ldapwhoami", LDAP},
        {"smbclient", SAMBA},
        {"rpcclient", SAMBA},
        {"zip", ZIP},
        {"unzip", ZIP},
        {"sqlcmd", ZIP},
        {"bcp", ZIP},
        {"sqlplus", ORACLE},
        {"expdp", ORACLE},
        {"impdp", ORACLE},
        {"curl", CURL},
        {"htpasswd", HTPASSWD},
        {"openssl", OPENSSL},
        {"cqlsh", SSHPASS},
        {"rdesktop", SSHPASS},
        {"psexec", SSHPASS},
        {"psexec64", SSHPASS},
        {"useradd", SSHPASS},
        {"usermod", SSHPASS},
        {"mosquitto_pub", ZIP},
        {"mosquitto_sub", ZIP},
        {"ipmitool", ZIP},
        {"nmcli", WORDS},
        {"aws", WORDS},
        {"snmpget", SNMP},
        {"snmpset", SNMP},
        {"snmpwalk", SNMP},
        {"snmpbulkwalk", SNMP},
        {"lftp", LFTP},
        {"xfreerdp", RDP},
    };
    for (size_t i = word.len; i-- > 0;)
        if (word.text[i] == '/' || word.text[i] == '\\') {
            word.len -= i + 1;
            word.text += i + 1;
            break;
        }
    if (ends_with(word, ".exe"))
        word.len -= 4;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (same(word, known[i].name))
            return known[i].program;
    return 0;
}

/* Masks what follows a sign in the word, as in -U user%secret. */
static bool mask_after(struct scan *scan, struct span word, char sign)
{
    const char *found = memchr(word.text, sign, word.len);
    if (found == NULL)
        return false;
    size_t keep = (size_t)(found - word.text) + 1;
    copy(scan, keep);
    mask(scan, word.len - keep);
    return true;
}

/* The options of curl, smbclient and htpasswd that are not simply "the rest or the next word". */
static bool mask_special_option(struct scan *scan, struct span word, char letter)
{
    if (letter == 'u' && (scan->programs & CURL) != 0 && word.len > 2)
        return mask_after(scan, word, ':');
    if (letter == 'b' && (scan->programs & CURL) != 0) {
        copy(scan, 2);
        if (word.len > 2)
            mask(scan, word.len - 2);
        scan->mask_next = word.len == 2;
        return true;
    }
    if (letter == 'U' && (scan->programs & SAMBA) != 0) {
        if (word.len > 2)
            return mask_after(scan, word, '%');
        scan->mask_percent = true;
        copy(scan, word.len);
        return true;
    }
    if ((scan->programs & LFTP) != 0 && letter == 'u') {
        if (word.len > 2)
            return mask_after(scan, word, ',');
        scan->mask_comma = true;
        copy(scan, word.len);
        return true;
    }
    if ((scan->programs & HTPASSWD) != 0 && letter != '\0' && letter != '-' &&
        memchr(word.text, 'b', word.len) != NULL) {
        /* After this one: the file, the user, the password; without the file for -n. */
        scan->mask_in_words = memchr(word.text, 'n', word.len) != NULL ? 3 : 4;
        copy(scan, word.len);
        return true;
    }
    if ((scan->programs & RDP) != 0 && starts_with(word, "/p:")) {
        copy(scan, 3);
        mask(scan, value_len(scan));
        return true;
    }
    return false;
}

/* -p and similar: masks the rest of the word after the two letters, or the next word. */
static bool mask_short_option(struct scan *scan, struct span word)
{
    static const char *const pair_options[] = {"-u", "--user", "--proxy-user", NULL};
    char letter = word.len >= 2 && word.text[0] == '-' ? word.text[1] : '\0';
    const unsigned programs = scan->programs;
    bool login = (programs & LOGIN) != 0 && (programs & LOGGED_IN) != 0;
    bool rest = (letter == 'p' && ((programs & (MYSQL | SSHPASS | SEVENZIP)) != 0 || login)) ||
                (letter == 'a' && (programs & REDIS) != 0) ||
                (letter == 'w' && (programs & LDAP) != 0) ||
                (letter == 'P' && (programs & ZIP) != 0) ||
                (letter != '\0' && strchr("AXc", letter) != NULL && (programs & SNMP) != 0);
    if (mask_special_option(scan, word, letter))
        return true;
    if (starts_with(word, "--user=") || starts_with(word, "--proxy-user="))
        return mask_after(scan, word, ':');
    const char after = word.len == 2 ? at(scan, 2) : '\0';
    if (rest && (word.len > 2 || after == '"' || after == '\'')) {
        copy(scan, 2);
        mask(scan, word.len > 2 ? word.len - 2 : value_len(scan));
        return true;
    }
    bool alone = word.len == 2 && lower(letter) == 'k' && (programs & OPENSSL) != 0;
    scan->mask_next =
        alone || (rest && ((programs & (SSHPASS | REDIS | LDAP | ZIP | SNMP)) != 0 || login));
    scan->mask_pair = any_of(word, pair_options);
    if (scan->mask_next || scan->mask_pair)
        copy(scan, word.len);
    return scan->mask_next || scan->mask_pair;
}

/* ------------------------------------------------------------ whole-word forms */

/* user:password@host without a scheme, and user/password@database of Oracle's tools. */
static bool mask_bare_credentials(struct scan *scan, struct span word)
{
    const bool oracle = (scan->programs & ORACLE) != 0;
    const char *sign = memchr(word.text, '@', word.len);
    if (word.len == 0 || word.text[0] == '-' || (sign == NULL && !oracle) ||
        (sign != NULL && sign + 1 == word.text + word.len))
        return false;
    const size_t end = sign != NULL ? (size_t)(sign - word.text) : word.len;
    const char mark = oracle ? '/' : ':';
    size_t user = 0;
    while (user < end && (is_key_char(word.text[user]) || word.text[user] == '+'))
        user++;
    if (user == 0 || user + 1 >= end || word.text[user] != mark || word.text[user + 1] == '/')
        return false; /* "://": a URL, see mask_authority */
    copy(scan, user + 1);
    mask(scan, end - user - 1);
    return true;
}

/* Paths that are a secret by themselves: knowing the URL is the right to post. */
static bool mask_webhook(struct scan *scan)
{
    static const char *const paths[] = {
        "hooks.slack.com/services/",    "hooks.slack.com/workflows/",
        "api.telegram.org/bot",         "discord.com/api/webhooks/",
        "discordapp.com/api/webhooks/", "webhook.office.com/",
        "hooks.zapier.com/hooks/",      NULL};
    size_t left = scan->arg.len - scan->pos, end = 0;
    for (const char *const *path = paths; *path != NULL; path++) {
        size_t len = strlen(*path);
        if (left <= len || !same((struct span){scan->arg.text + scan->pos, len}, *path))
            continue;
        copy(scan, len);
        left -= len;
        while (end < left && !is_blank(at(scan, end)) && strchr("\"'?#", at(scan, end)) == NULL)
            end++;
        mask(scan, end);
        return true;
    }
    return false;
}

/* A key in PEM form: from its first line to its last, or to the end of the argument. */
static bool mask_pem(struct scan *scan)
{
    static const char begin[] = "-----BEGIN ", end[] = "-----END ";
    size_t left = scan->arg.len - scan->pos, len = sizeof begin - 1;
    const char *text = scan->arg.text + scan->pos;
    if (left < len || memcmp(text, begin, len) != 0)
        return false;
    while (len < left &&
           (left - len < sizeof end - 1 || memcmp(text + len, end, sizeof end - 1) != 0))
        len++;
    for (unsigned dashes = 0; len < left && dashes < 10; len++)
        dashes += text[len] == '-';
    mask(scan, len);
    return true;
}

static bool contains(struct span span, const char *text)
{
    const size_t len = strlen(text);
    for (; span.len >= len; span.text++, span.len--)
        if (memcmp(span.text, text, len) == 0)
            return true;
    return false;
}

/* echo SECRET | docker login --password-stdin, in one shell command: masks up to the pipe. */
static bool mask_piped(struct scan *scan, struct span word)
{
    static const char *const writers[] = {"echo", "printf", NULL};
    static const char *const readers[] = {"--password-stdin", "chpasswd", "sudo -S",
                                          "passwd --stdin", NULL};
    const size_t left = scan->arg.len - scan->pos;
    size_t end = word.len;
    bool found = false;
    if (!any_of(word, writers))
        return false;
    while (end < left && at(scan, end) != '|')
        end++;
    const struct span rest = {scan->arg.text + scan->pos + end, left - end};
    for (const char *const *reader = readers; *reader != NULL; reader++)
        found = found || contains(rest, *reader);
    if (!found)
        return false;
    copy(scan, word.len + 1);
    mask(scan, end - word.len - 1);
    return true;
}

/* --------------------------------------------------------------------- words */

static struct span word_here(const struct scan *scan)
{
    size_t len = 0, left = scan->arg.len - scan->pos;
    while (len < left && !is_blank(at(scan, len)) && !strchr("\"'", at(scan, len)))
        len++;
    return (struct span){scan->arg.text + scan->pos, len};
}

/* The end of a value in a word that an enclosing quote opened before its name. */
static size_t quoted_len(const struct scan *scan, char quote)
{
    size_t len = 0, left = scan->arg.len - scan->pos;
    while (len < left && at(scan, len) != quote)
        len++;
    return len < left ? len : value_len(scan);
}

/* Copies a secret name and masks its value. False if nothing was consumed. */
static bool mask_named(struct scan *scan)
{
    size_t key_len = 0, skip, left = scan->arg.len - scan->pos;
    const bool starts_arg = scan->pos == 0;
    const char before = scan->pos > 0 ? scan->arg.text[scan->pos - 1] : '\0';
    while (key_len < left && is_key_char(at(scan, key_len)))
        key_len++;
    const struct span key = {scan->arg.text + scan->pos, key_len};
    enum secrecy secrecy = key_len == 0 ? NO_SECRET : secrecy_of(key);
    if ((before == '?' || before == '&') && secrecy == SECRET_UNLESS_PLAIN)
        secrecy = SECRET; /* a parameter of a URL */
    if (secrecy == NO_SECRET)
        return false;
    skip = key_len;
    while (at(scan, skip) == '\\') /* {\"password\": … inside a quoted shell command */
        skip++;
    const bool json = at(scan, skip) == '"' || at(scan, skip) == '\'';
    const bool escaped = skip > key_len;
    if (json) /* {"password": … */
        skip++;
    while (skip < left && (at(scan, skip) == ' ' || at(scan, skip) == '\t'))
        skip++;
    const char sign = at(scan, skip);
    if (sign == '=' || sign == ':') {
        skip++;
        while (skip < left && (at(scan, skip) == ' ' || at(scan, skip) == '='))
            skip++;
        copy(scan, skip);
        size_t len = starts_arg && sign == '=' ? scan->arg.len - scan->pos : value_len(scan);
        if (escaped && at(scan, 0) == '\\') { /* \"value\" */
            for (len = 2; len < scan->arg.len - scan->pos && at(scan, len) != '"'; len++)
                ;
            len += len < scan->arg.len - scan->pos;
        } else if (!json && !starts_arg && (before == '"' || before == '\'')) {
            len = quoted_len(scan, before);
        }
        if (is_header_name(key) && sign == ':')
            mask_header(scan, before);
        else if (secrecy == SECRET_UNLESS_PLAIN && is_plain_value(scan->arg.text + scan->pos, len))
            copy(scan, len);
        else
            mask(scan, len);
        return true;
    }
    static const char *const switches[] = {"-stdin", NULL}; /* take no value */
    const bool option = key.text[0] == '-';
    if ((option || (scan->programs & WORDS) != 0) && !ends_with_any(key, switches)) {
        scan->mask_next = true;
        scan->unless_plain = secrecy == SECRET_UNLESS_PLAIN;
        scan->unless_option = !option;
    }
    copy(scan, key_len);
    return true;
}

/* At the start of a word. */
static void scan_word(struct scan *scan)
{
    size_t len = token_len(scan);
    if (len > 0) {
        mask(scan, len);
        return;
    }
    struct span word = word_here(scan);
    scan->programs |= program_of(word);
    if (mask_pem(scan) || mask_webhook(scan) || mask_piped(scan, word) ||
        mask_short_option(scan, word) || mask_bare_credentials(scan, word) || mask_named(scan))
        return;
    if (scan->pos < scan->arg.len)
        copy(scan, 1);
}

static bool is_pending(const struct scan *scan)
{
    return scan->mask_next || scan->mask_pair || scan->mask_percent || scan->mask_comma ||
           scan->mask_in_words == 1;
}

/* Masks the value that an earlier word announced. False if nothing was consumed. */
static bool mask_pending(struct scan *scan)
{
    const size_t len = scan->pos == 0 ? scan->arg.len : value_len(scan);
    const bool pair = scan->mask_pair, percent = scan->mask_percent, comma = scan->mask_comma;
    const bool unless_option = scan->unless_option;
    scan->mask_next = scan->mask_pair = scan->mask_percent = scan->mask_comma = false;
    scan->unless_option = false;
    scan->mask_in_words = 0;
    if (percent || comma)
        return mask_after(scan, (struct span){scan->arg.text + scan->pos, len},
                          percent ? '%' : ',');
    if (pair)
        return mask_pair(scan, len);
    const char *text = scan->arg.text + scan->pos;
    if (unless_option && text[0] == '-')
        return false;
    if (scan->unless_plain && (text[0] == '-' || is_plain_value(text, len)))
        return scan->unless_plain = false;
    scan->unless_plain = false;
    mask(scan, len ? len : 1);
    return true;
}

static void scan_arg(struct scan *scan)
{
    bool starts_word = true;
    if (scan->arg.len == 0)
        scan->mask_next = scan->unless_plain = scan->unless_option = scan->mask_pair =
            scan->mask_percent = scan->mask_comma = false;
    if (scan->mask_in_words > 1)
        scan->mask_in_words--;
    while (scan->pos < scan->arg.len) {
        bool pending = is_pending(scan) && !is_blank(at(scan, 0));
        if (pending && mask_pending(scan)) {
            starts_word = false;
        } else if (at(scan, 0) == ':' && at(scan, 1) == '/' && at(scan, 2) == '/') {
            copy(scan, 3);
            mask_authority(scan);
            starts_word = true;
        } else if (starts_word) {
            scan_word(scan);
            starts_word = !is_key_char(scan->arg.text[scan->pos - 1]);
        } else {
            starts_word = !is_key_char(at(scan, 0));
            copy(scan, 1);
        }
    }
}

size_t ew_mask_cmdline(const char *args, size_t len, char *buffer, size_t size)
{
    struct writer out = {buffer, size, 0};
    struct scan scan = {.out = &out};
    put(&out, "", 0);
    for (size_t start = 0; start < len;) {
        const char *end = memchr(args + start, '\0', len - start);
        size_t arg_len = end ? (size_t)(end - (args + start)) : len - start;
        if (start > 0)
            put(&out, " ", 1);
        scan.arg = (struct span){args + start, arg_len};
        scan.pos = 0;
        scan.cut = end == NULL;
        scan_arg(&scan);
        start += arg_len + 1;
    }
    return out.len;
}
