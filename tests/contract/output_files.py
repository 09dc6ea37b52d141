# SPDX-License-Identifier: MIT
"""Files that etwatch writes: access rights, links that other users planted, names of temporary files."""
import os
import stat

from lib import ETWATCH, cases, check, check_eq, check_in, main, run, skip, temp_dir, test

HOSTILE, ORDINARY = 65534, 65533
SECRET = b"belongs to root\n"


def need_linux():
    if os.environ.get("ETWATCH_UNDER_WINE") == "1":
        skip("Windows files inherit the rights of their folder")


def need_root():
    need_linux()
    if os.getuid() != 0:
        skip("needs root to act as two users")


def rights(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


def recording(folder):
    path = os.path.join(folder, "source.pftrace")
    check_eq(run(["record", "-q", "--source", "poll", "-o", path, "--", "true"]).code, 0, "record")
    return path


def open_folder(folder, mode=0o777):
    """A folder that every user can write to, below one that only its owner can."""
    path = os.path.join(folder, "open")
    os.mkdir(path)
    os.chmod(path, mode)
    os.chmod(folder, 0o755)
    return path


def victim(folder):
    path = os.path.join(folder, "victim")
    with open(path, "wb") as file:
        file.write(SECRET)
    return path


def check_untouched(path):
    with open(path, "rb") as file:
        check_eq(file.read(), SECRET, "content of the victim")


def link_of(user, target, path):
    os.symlink(target, path)
    os.lchown(path, user, user)


COMMANDS = [("run", ["run", "-q", "--source", "poll", "--json", "-o", "OUT", "--", "true"], "out.json"),
            ("stat", ["stat", "-q", "--source", "poll", "--csv", "-o", "OUT", "--duration", "0.1", "-p", "SELF"], "out.csv"),
            ("record", ["record", "-q", "--source", "poll", "-o", "OUT", "--", "true"], "out.pftrace"),
            ("report", ["report", "-o", "OUT", "SOURCE"], "out.txt"),
            ("events", ["events", "-o", "OUT", "SOURCE"], "out.txt"),
            ("export to arrow", ["export", "-o", "OUT", "SOURCE"], "out.arrow"),
            ("export to csv", ["export", "-o", "OUT", "SOURCE"], "out.csv")]


def fill(arguments, out, source):
    return [{"OUT": out, "SOURCE": source, "SELF": os.getpid()}.get(word, word) for word in arguments]


@cases(COMMANDS)
def a_new_file_is_private_whatever_the_umask_is(arguments, name):
    need_linux()
    with temp_dir() as folder:
        out = os.path.join(folder, name)
        done = run(fill(arguments, out, recording(folder)), umask=0)
        check_eq(done.code, 0, done.err)
        check_eq(rights(out), 0o600, "access rights")


@cases(COMMANDS)
def mode_sets_the_rights_exactly(arguments, name):
    need_linux()
    with temp_dir() as folder:
        out = os.path.join(folder, name)
        done = run([arguments[0], "--mode", "644", *fill(arguments[1:], out, recording(folder))], umask=0o077)
        check_eq(done.code, 0, done.err)
        check_eq(rights(out), 0o644, "access rights")


@test
def an_existing_file_keeps_its_rights_without_mode():
    need_linux()
    with temp_dir() as folder:
        out = os.path.join(folder, "out.json")
        with open(out, "w", encoding="utf-8"):
            os.chmod(out, 0o640)
        check_eq(run(["run", "-q", "--source", "poll", "--json", "-o", out, "--", "true"]).code, 0, "exit code")
        check_eq(rights(out), 0o640, "access rights")


@cases([("not octal", "8"), ("no right to write", "444"), ("a program", "755"), ("too long", "00644")])
def a_wrong_mode_is_a_usage_error(mode):
    done = run(["run", "--mode", mode, "--", "true"])
    check_eq(done.code, 2, "exit code")
    check_in("--mode needs octal access rights such as 640", done.err)


@cases(COMMANDS)
def a_planted_link_does_not_make_root_overwrite_its_target(arguments, name):
    need_root()
    with temp_dir() as folder:
        shared, target = open_folder(folder), victim(folder)
        out = os.path.join(shared, name)
        link_of(HOSTILE, target, out)
        done = run(fill(arguments, out, recording(folder)))
        check(done.code != 0, "the link was followed")
        check_in(f"cannot write to {out}", done.err)
        check_untouched(target)


@test
def the_name_of_a_temporary_file_cannot_be_planted():
    need_root()
    with temp_dir() as folder:
        shared, target = open_folder(folder), victim(folder)
        out = os.path.join(shared, "x.arrow")
        link_of(HOSTILE, target, out + ".part")
        done = run(["export", "-o", out, recording(folder)])
        check_eq(done.code, 0, done.err)
        check_untouched(target)
        check_eq(sorted(os.listdir(shared)), ["x.arrow", "x.arrow.part"], "files")


@test
def a_planted_link_to_a_folder_is_not_followed_with_the_rights_of_root():
    need_root()
    with temp_dir() as folder:
        shared = open_folder(folder)
        private = os.path.join(folder, "private")
        os.mkdir(private, 0o700)
        link_of(HOSTILE, private, os.path.join(shared, "way"))
        done = run(["run", "-q", "--json", "-o", os.path.join(shared, "way", "x.json"), "--", "true"])
        check_eq(done.code, 1, "exit code")
        check_eq(os.listdir(private), [], "files")


@test
def a_planted_file_does_not_receive_the_data():
    need_root()
    with temp_dir() as folder:
        shared = open_folder(folder)
        out = os.path.join(shared, "x.json")
        with open(out, "w+", encoding="utf-8") as planted:
            os.fchown(planted.fileno(), HOSTILE, HOSTILE)
            os.fchmod(planted.fileno(), 0o666)
            done = run(["run", "-q", "--source", "poll", "--json", "-o", out, "--", "true"])
            check_eq(done.code, 0, done.err)
            check_eq(planted.read(), "", "what the other user reads")
        check_eq((os.stat(out).st_uid, rights(out)), (0, 0o600), "owner and rights")


@test
def another_users_link_is_refused_with_its_reason():
    need_root()
    with temp_dir() as folder:
        shared = open_folder(folder)
        out = os.path.join(shared, "x.json")
        link_of(HOSTILE, os.path.join(shared, "y.json"), out)
        done = run(["run", "-q", "--source", "poll", "--json", "-o", out, "--", "true"], user=ORDINARY, group=ORDINARY,
                   extra_groups=[], cwd="/")
        if "Permission denied" in done.err and ETWATCH in done.err:
            skip("the build folder is closed to other users")
        check_eq(done.code, 1, "exit code")
        check_in("another user's symbolic link", done.err)


@test
def own_links_and_devices_are_followed():
    need_linux()
    with temp_dir() as folder:
        shared, target = open_folder(folder), os.path.join(folder, "target.json")
        out = os.path.join(shared, "x.json")
        os.symlink(target, out)
        check_eq(run(["run", "-q", "--source", "poll", "--json", "-o", out, "--", "true"]).code, 0, "exit code")
        check(os.path.islink(out) and os.path.getsize(target) > 0, "the link was replaced")
        done = run(["run", "-q", "--source", "poll", "--json", "-o", "/dev/stdout", "--", "true"])
        check_eq(done.code, 0, done.err)
        check_in('"type":"meta"', done.out)
        check_eq(run(["run", "-q", "--source", "poll", "--json", "-o", "/dev/null", "--", "true"]).code, 0, "exit code")


@test
def a_file_in_the_folder_of_another_user_belongs_to_that_user():
    need_root()
    with temp_dir() as folder:
        home = open_folder(folder, 0o700)
        os.chown(home, ORDINARY, ORDINARY)
        for arguments, name in ((row[1], row[2]) for row in COMMANDS):
            out = os.path.join(home, name)
            done = run(fill(arguments, out, recording(folder)))
            check_eq(done.code, 0, done.err)
            check_eq((os.stat(out).st_uid, rights(out)), (ORDINARY, 0o600), f"owner and rights of {name}")


main()
