/* SPDX-License-Identifier: MIT */
/*
 * Masking of secrets in command lines. In the tables '|' stands for the NUL that ends an argument.
 */
#include <string.h>

#include "model/mask.h"
#include "test.h"

struct row {
    const char *args, *want, *remark;
};

static void check_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char args[512], buffer[512];
        size_t len = strlen(rows[i].args);
        CHECK(len < sizeof args);
        for (size_t k = 0; k < len; k++)
            args[k] = rows[i].args[k] == '|' ? '\0' : rows[i].args[k];
        test_row(rows[i].remark);
        size_t written = ew_mask_cmdline(args, len, buffer, sizeof buffer);
        CHECK_EQ_STR(buffer, rows[i].want);
        CHECK_EQ_UINT(written, strlen(rows[i].want));
    }
}

#define CHECK_ROWS(rows) check_rows((rows), sizeof(rows) / sizeof(rows)[0])

TEST(text_without_secrets_is_unchanged)
{
    static const struct row rows[] = {
        {"ls|-la|/tmp|", "ls -la /tmp", "a plain command"},
        {"", "", "no arguments, as of a kernel thread"},
        {"|", "", "one empty argument"},
        {"a||b|", "a  b", "an empty argument between"},
        {"sort|--key=2|file|", "sort --key=2 file", "a key that sorts"},
        {"openssl|req|-key|server.pem|", "openssl req -key server.pem", "the path of a key"},
        {"git|commit|--author=me|", "git commit --author=me", "author is not auth"},
        {"run|--max-tokens=512|--tokenizer=bpe|", "run --max-tokens=512 --tokenizer=bpe",
         "tokens of a language model"},
        {"curl|http://host:8080/path?x=1|", "curl http://host:8080/path?x=1", "a port"},
        {"git|clone|ssh://git@host/x|", "git clone ssh://git@host/x", "a user without password"},
        {"curl|http://host/a@b|", "curl http://host/a@b", "an at sign in a path"},
        {"scp|-p|a|b|", "scp -p a b", "a -p that keeps times"},
        {"sh|-c|echo hello|", "sh -c echo hello", "output that nothing reads"},
        {"mkdir|-pv|x|", "mkdir -pv x", "a -p of another program"},
        {"skopeo|sk-learn|hf_x|", "skopeo sk-learn hf_x", "too short for a token"},
        {"nginx: master process|", "nginx: master process", "a title that is no command line"},
        {"python3|-c|print('\xc3\xa9')|", "python3 -c print('\xc3\xa9')", "UTF-8"},
        {"bypass|compass|--bypass=1|", "bypass compass --bypass=1", "words that end in pass"},
    };
    CHECK_ROWS(rows);
}

TEST(values_of_secret_names_are_masked)
{
    static const struct row rows[] = {
        {"x|--password=a b&c;d|-v|", "x --password=*** -v", "the whole argument"},
        {"x|--password|a b|-v|", "x --password *** -v", "the next argument, blanks and all"},
        {"x|--password|--odd|-v|", "x --password *** -v", "even one that looks like an option"},
        {"x|--password|", "x --password", "no value"},
        {"x|--password=|-v|", "x --password= -v", "an empty value"},
        {"x|--db-password=a|", "x --db-password=***", "a part of the name"},
        {"x|--dbpassword=a|", "x --dbpassword=***", "the end of a part"},
        {"x|--dbPassword=a|", "x --dbPassword=***", "a hump"},
        {"x|--dbPwd=a|", "x --dbPwd=***", "a hump before a short name"},
        {"x|-password|a|", "x -password ***", "one dash"},
        {"x|--api-key|a|", "x --api-key ***", "a key of an interface"},
        {"x|--apiKey=a|", "x --apiKey=***", "the same in camel case"},
        {"x|--token|a|", "x --token ***", "a token"},
        {"x|--auth-token=a|", "x --auth-token=***", "two such parts"},
        {"openssl|-passin|pass:a|", "openssl -passin ***", "openssl"},
        {"env|KEY=a|SECRET=b|MY_TOKEN=c|x|", "env KEY=*** SECRET=*** MY_TOKEN=*** x", "variables"},
        {"AWS_SECRET_ACCESS_KEY=a/b+c|x|", "AWS_SECRET_ACCESS_KEY=*** x", "a variable in front"},
        {"x|OPENAI_API_KEY=a|", "x OPENAI_API_KEY=***", "ends in KEY"},
        {"env|KEY=123|APP2_KEY=456|x|", "env KEY=*** APP2_KEY=*** x", "keys that are numbers"},
        {"x|--api-key=123|", "x --api-key=***", "one of an interface"},
        {"psql|host=h password=p dbname=d|", "psql host=h password=*** dbname=d",
         "a connection string"},
        {"x|Server=h;Password=p;Port=1|", "x Server=h;Password=***;Port=1", "another kind of it"},
        {"x|http://h/?a=1&token=t&b=2|", "x http://h/?a=1&token=***&b=2", "a query"},
        {"x|{\"user\":\"u\",\"password\": \"p q\"}|", "x {\"user\":\"u\",\"password\": ***}",
         "JSON"},
        {"sh|-c|run --password p --fast|", "sh -c run --password *** --fast", "in a shell command"},
        {"sh|-c|run --password='p q' --fast|", "sh -c run --password=*** --fast", "and quoted"},
        {"sh|-c|PASSWORD=p run|", "sh -c PASSWORD=***", "an assignment masks its argument"},
    };
    CHECK_ROWS(rows);
}

TEST(headers_are_masked_except_for_their_scheme)
{
    static const struct row rows[] = {
        {"curl|-H|Authorization: Bearer abc.def|u|", "curl -H Authorization: Bearer *** u",
         "Bearer"},
        {"curl|-H|authorization:Basic YTpi|", "curl -H authorization:Basic ***", "Basic"},
        {"curl|-H|Authorization: abc def|", "curl -H Authorization: ***", "no scheme"},
        {"curl|-H|X-Api-Key: abc|", "curl -H X-Api-Key: ***", "a custom header"},
        {"curl|-H|Cookie: a=1; b=2|", "curl -H Cookie: ***", "all cookies"},
        {"curl|-HAuthorization: Bearer x|", "curl -HAuthorization: Bearer ***", "attached"},
        {"sh|-c|curl -H \"Authorization: Bearer x y\" http://h|",
         "sh -c curl -H \"Authorization: Bearer ***\" http://h", "quoted in a shell command"},
        {"curl|-H|Accept: text/html|", "curl -H Accept: text/html", "no secret in it"},
    };
    CHECK_ROWS(rows);
}

TEST(credentials_in_urls_are_masked)
{
    static const struct row rows[] = {
        {"x|https://u:p@h/y|", "x https://u:***@h/y", "user and password"},
        {"x|https://:p@h/y|", "x https://:***@h/y", "a password alone"},
        {"x|redis://u:p@q@h|", "x redis://u:***@h", "an at sign in the password"},
        {"x|postgres://u:p/q@h/db|", "x postgres://u:***@h/db", "a slash in the password"},
        {"x|--url=https://u:p@h/|", "x --url=https://u:***@h/", "in an option"},
        {"x|a,https://u:p@h,https://v:q@i|", "x a,https://u:***@h,https://v:***@i", "a list"},
        {"x|https://0123456789abcdef0123@h/|", "x https://***@h/", "a token as user"},
        {"x|https://u:p|", "x https://u:p", "no host after it, and whole"},
        {"x|https://u:p", "x https://u:***", "cut before the at sign"},
        {"x|https://h:8080", "x https://h:8080", "cut, but a port"},
        {"x|https://h/a b@c|", "x https://h/a b@c", "the next word is no part of it"},
    };
    CHECK_ROWS(rows);
}

TEST(more_names_are_secret)
{
    static const struct row rows[] = {
        {"x|--pw|a|--pin=1234|--otp|123456|", "x --pw *** --pin=*** --otp ***", "short names"},
        {"x|--psk=a|--jwt|b|--authkey=c|", "x --psk=*** --jwt *** --authkey=***", "more of them"},
        {"x|--key=s3cr3tvalue|", "x --key=***", "a key that is not a column"},
        {"sort|--key=2,3n|", "sort --key=2,3n", "a key that is"},
        {"openssl|--key=server.pem|--key=/etc/k|", "openssl --key=server.pem --key=/etc/k",
         "paths"},
        {"x|db_key=abcdef|", "x db_key=***", "lower case"},
        {"x|public_key=abcdef|sort_key=name|", "x public_key=abcdef sort_key=name", "open keys"},
        {"x|password10=abc|", "x password10=***", "a number with a zero"},
        {"sh|-c|sort --key=2,3n file|", "sh -c sort --key=2,3n file",
         "a column in a shell command"},
        {"x|passwords=a,b|secret1=s|token_2=t|", "x passwords=*** secret1=*** token_2=***",
         "plurals and digits"},
        {"x|--password2|s|--tokens|abc|--key|k3y|", "x --password2 *** --tokens *** --key ***",
         "with the value as the next argument"},
        {"run|--max-tokens|512|--keys|--all|", "run --max-tokens 512 --keys --all",
         "a count, and no value at all"},
        {"openssl|enc|-k|s|-K|00ff|-key|a.pem|", "openssl enc -k *** -K *** -key a.pem", "openssl"},
        {"run|--max-tokens=512|", "run --max-tokens=512", "a count"},
        {"curl|http://h/?key=abc&x=1|", "curl http://h/?key=***&x=1", "a parameter of a URL"},
        {"curl|http://h/?key=123|", "curl http://h/?key=***", "even if it is a number"},
    };
    CHECK_ROWS(rows);
}

TEST(more_programs_are_known)
{
    static const struct row rows[] = {
        {"docker|login|-u|me|-p|s|reg|", "docker login -u me -p *** reg", "docker login"},
        {"podman|login|-ps|reg|", "podman login -p*** reg", "attached"},
        {"docker|run|-p|80:80|img|", "docker run -p 80:80 img", "a port"},
        {"curl|--user=me:s|h|", "curl --user=me:*** h", "with an equals sign"},
        {"curl|-ume:s|h|", "curl -ume:*** h", "attached"},
        {"sh|-c|curl -ume:s h|", "sh -c curl -ume:*** h", "attached, in a shell command"},
        {"curl|-b|sid=1|h|", "curl -b *** h", "cookies"},
        {"curl|-bsid=1|h|", "curl -b*** h", "cookies, attached"},
        {"mongosh|-u|me|-p|s|h|", "mongosh -u me -p *** h", "mongosh"},
        {"mongodump|-ps|", "mongodump -p***", "mongodump"},
        {"mycli|-p|s|db|", "mycli -p *** db", "mycli"},
        {"mysqlsh|-ps|", "mysqlsh -p***", "mysqlsh"},
        {"ldapsearch|-x|-w|s|-b|dc=x|", "ldapsearch -x -w *** -b dc=x", "ldapsearch"},
        {"smbclient|//h/s|-U|me%s|", "smbclient //h/s -U me%***", "smbclient"},
        {"smbclient|//h/s|-Ume%s|", "smbclient //h/s -Ume%***", "attached"},
        {"zip|-P|s|a.zip|f|", "zip -P *** a.zip f", "zip"},
        {"unzip|-Ps|a.zip|", "unzip -P*** a.zip", "unzip"},
        {"sqlcmd|-S|h|-U|me|-P|s|", "sqlcmd -S h -U me -P ***", "sqlcmd"},
        {"sqlplus|scott/tiger@db|", "sqlplus scott/***@db", "user/password@"},
        {"htpasswd|-b|file|me|s|", "htpasswd -b file me ***", "the third argument"},
    };
    CHECK_ROWS(rows);
}

TEST(programs_of_other_systems_are_known)
{
    static const struct row rows[] = {
        {"keytool|-list|-storepass|s|-keypass|t|", "keytool -list -storepass *** -keypass ***",
         "keytool"},
        {"x|--dbpass=s|--bindpw|t|", "x --dbpass=*** --bindpw ***", "words written together"},
        {"cqlsh|-u|me|-p|s|", "cqlsh -u me -p ***", "cqlsh"},
        {"mosquitto_pub|-u|me|-P|s|-t|x|", "mosquitto_pub -u me -P *** -t x", "mosquitto"},
        {"ipmitool|-H|h|-P|s|power|", "ipmitool -H h -P *** power", "ipmitool"},
        {"nmcli|dev|wifi|connect|net|password|12345678|", "nmcli dev wifi connect net password ***",
         "a name without dashes"},
        {"aws|configure|set|aws_secret_access_key|s|",
         "aws configure set aws_secret_access_key ***", "the same of aws"},
        {"aws|secretsmanager|get-secret-value|--secret-id|x|",
         "aws secretsmanager get-secret-value --secret-id ***", "followed by an option"},
        {"grep|password|file|", "grep password file", "elsewhere it is only a word"},
        {"snmpwalk|-v3|-A|s|-X|t|h|", "snmpwalk -v3 -A *** -X *** h", "SNMP"},
        {"snmpget|-v2c|-cs|h|", "snmpget -v2c -c*** h", "its community"},
        {"lftp|-u|me,s|h|", "lftp -u me,*** h", "lftp"},
        {"lftp|-ume,s|h|", "lftp -ume,*** h", "attached"},
        {"xfreerdp|/u:me|/p:s|/v:h|", "xfreerdp /u:me /p:*** /v:h", "RDP"},
        {"sqlplus|-s|scott/tiger|@run.sql|", "sqlplus -s scott/*** @run.sql", "no database"},
        {"sqlplus|/|as|sysdba|", "sqlplus / as sysdba", "no password"},
        {"htpasswd|-nbB|me|s|", "htpasswd -nbB me ***", "without a file"},
        {"htpasswd|-cb|file|me|s|", "htpasswd -cb file me ***", "with one"},
        {"mysql.exe|-ps|", "mysql.exe -p***", "a program of Windows"},
        {"\"C:\\Program Files\\MySQL\\mysql.exe\"|-ps|",
         "\"C:\\Program Files\\MySQL\\mysql.exe\" -p***", "by its path"},
        {"mysql|-p\"a b\"|db|", "mysql -p*** db", "quoted"},
        {"sh|-c|mysql -p'a b' db|", "sh -c mysql -p*** db", "quoted in a shell command"},
    };
    CHECK_ROWS(rows);
}

TEST(more_forms_are_masked)
{
    static const struct row rows[] = {
        {"x|me:s@host|", "x me:***@host", "no scheme"},
        {"git|clone|git@host:org/repo|", "git clone git@host:org/repo", "a user alone"},
        {"curl|https://hooks.slack.com/services/T0/B0/xyz|",
         "curl https://hooks.slack.com/services/***", "Slack"},
        {"curl|https://api.telegram.org/bot12:AB/send?x=1|",
         "curl https://api.telegram.org/bot***?x=1", "Telegram"},
        {"curl|https://discord.com/api/webhooks/1/ab|", "curl https://discord.com/api/webhooks/***",
         "Discord"},
        {"sh|-c|curl -d '{\"password\":\"p,q\"}' h|", "sh -c curl -d '{\"password\":***}' h",
         "JSON"},
        {"sh|-c|curl -d \"{\\\"password\\\":\\\"p;q\\\"}\" h|",
         "sh -c curl -d \"{\\\"password\\\":***}\" h", "JSON with escaped quotes"},
        {"sh|-c|run \"--password=a;b,c\" x|", "sh -c run \"--password=***\" x", "inside quotes"},
        {"sh|-c|x PASSWORD='a;b' y|", "sh -c x PASSWORD=*** y", "a quoted value"},
        {"x|sk_live_0123456789ab|", "x ***", "Stripe"},
        {"x|hvs.0123456789ab|", "x ***", "Vault"},
        {"x|xapp-1-A0123456789|", "x ***", "Slack app"},
        {"x|GOCSPX-0123456789ab|", "x ***", "Google client"},
        {"x|dop_v1_0123456789abcdef0|", "x ***", "DigitalOcean"},
        {"x|SG.0123456789abcdefgh|", "x ***", "SendGrid"},
        {"x|AGE-SECRET-KEY-1QQPZRY9X8GF2TVDW0|", "x ***", "age"},
        {"x|-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----|-v|", "x *** -v", "PEM"},
    };
    CHECK_ROWS(rows);
}

TEST(what_is_piped_into_a_program_that_reads_a_password_is_masked)
{
    static const char *const rows[][2] = {
        {"echo hunter2 | docker login -u me --password-stdin reg",
         "echo ***| docker login -u me --password-stdin reg"},
        {"echo me:s | chpasswd", "echo ***| chpasswd"},
        {"printf 's\n' | sudo -S reboot", "printf ***| sudo -S reboot"},
        {"echo s | tee file; sudo reboot", "echo s | tee file; sudo reboot"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char buffer[128];
        test_row(rows[i][1]);
        (void)ew_mask_cmdline(rows[i][0], strlen(rows[i][0]) + 1, buffer, sizeof buffer);
        CHECK_EQ_STR(buffer, rows[i][1]);
    }
}

TEST(short_options_are_masked_where_their_program_is_known)
{
    static const struct row rows[] = {
        {"mysql|-uroot|-psecret|db|", "mysql -uroot -p*** db", "mysql"},
        {"/usr/bin/mysqldump|-psecret|", "/usr/bin/mysqldump -p***", "by path"},
        {"sudo|mysql|-psecret|", "sudo mysql -p***", "after another program"},
        {"mysql|-p|db|", "mysql -p db", "mysql prompts for it: db is the database"},
        {"sshpass|-p|s x|ssh|h|", "sshpass -p *** ssh h", "sshpass, apart"},
        {"sshpass|-ps|ssh|-p|22|", "sshpass -p*** ssh -p ***", "masked when in doubt"},
        {"7z|a|-psecret|x.7z|", "7z a -p*** x.7z", "7z"},
        {"redis-cli|-a|s|get|", "redis-cli -a *** get", "redis"},
        {"curl|-u|me:s:t|http://h|", "curl -u me:*** http://h", "user and password"},
        {"curl|--user|me|http://h|", "curl --user me http://h", "a user alone"},
        {"curl|-u||--password=a|", "curl -u  --password=***", "an empty argument is the value"},
        {"curl|-u|--password=a:b|", "curl -u --password=***", "an option instead of the pair"},
        {"x|-u|PASSWORD=a:b|", "x -u PASSWORD=***", "an assignment instead of the pair"},
        {"curl|--proxy-user|me:s|", "curl --proxy-user me:***", "for the proxy"},
        {"sh|-c|curl -u me:s h|", "sh -c curl -u me:*** h", "in a shell command"},
    };
    CHECK_ROWS(rows);
}

TEST(tokens_are_known_by_their_shape)
{
    static const struct row rows[] = {
        {"x|AKIAIOSFODNN7EXAMPLE|", "x ***", "AWS"},
        {"x|--id=AKIAIOSFODNN7EXAMPLE|", "x --id=***", "in an option"},
        {"x|ghp_0123456789abcdefghijABCDEFGHIJ012345|", "x ***", "GitHub"},
        {"x|github_pat_0123456789abcdefghij_ABC|", "x ***", "GitHub, fine-grained"},
        {"x|glpat-0123456789abcdefghij|", "x ***", "GitLab"},
        {"x|hf_0123456789abcdefghijABCDEFGHIJ|", "x ***", "Hugging Face"},
        {"x|xoxb-123456789012-abcdef|", "x ***", "Slack"},
        {"x|sk-proj-0123456789abcdefghij|", "x ***", "OpenAI"},
        {"x|eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln|", "x ***", "JWT"},
        {"x|see:ghp_0123456789abcdefghijABCDEFGHIJ012345,y|", "x see:***,y", "inside a text"},
        {"x|ghp_01234567", "x ***", "cut: it may have been longer"},
        {"x|ghp_01234567|", "x ghp_01234567", "whole and too short"},
        {"x|WALKIAIOSFODNN7EXAMPLE|", "x WALKIAIOSFODNN7EXAMPLE", "not at the start of a word"},
    };
    CHECK_ROWS(rows);
}

TEST(a_line_that_does_not_fit_is_cut_and_terminated)
{
    static const char args[] = "abc\0--password=secret";
    char buffer[32];
    for (size_t size = 1; size <= sizeof buffer; size++) {
        memset(buffer, 'x', sizeof buffer);
        size_t len = ew_mask_cmdline(args, sizeof args, buffer, size);
        CHECK(len < size);
        CHECK_EQ_UINT(strlen(buffer), len);
        CHECK_EQ_MEM(buffer, "abc --password=***", len);
        CHECK(strstr(buffer, "secret") == NULL);
    }
    buffer[0] = 'x';
    CHECK_EQ_UINT(ew_mask_cmdline(args, sizeof args, buffer, 0), 0);
    CHECK_EQ_INT(buffer[0], 'x');
}
