#include "tools/caffe/python_program.hpp"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

// Where the package is, relative to the programs of a build tree, a wheel and an installation.
constexpr const char* kFolders[] = {"../python", "../..", "../lib/python3/dist-packages"};

// Debian's interpreter, for which the build makes the Python module.
constexpr const char* kSystemPython = "/usr/bin/python3";

// Runs a module's main(). Never imports files from the working folder, which may be somebody
// else's. If the import fails, tries the other interpreter, if one is named; if that fails too,
// prints one line without a traceback. Ctrl-C, which is blocked while the interpreter starts, ends
// the process by its default action until main() handles it.
constexpr const char* kStart = R"(import sys
sys.path[:] = [path for path in sys.path if path]
import importlib, os, signal
raises = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if raises: signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
other, module, command = sys.argv[1:4]
del sys.argv[1:4]
try:
    main = importlib.import_module(module + ".__main__").main
except ImportError as error:
    if other and os.access(other, os.X_OK):
        source = sys.orig_argv[sys.orig_argv.index("-c") + 1]
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.execv(other, [other, "-c", source, "", module, command, *sys.argv[1:]])
    sys.exit(f"{command}: {error}")
if raises: signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(main()))";

// Empty if this program has no package near it.
std::string FolderOfPackage() {
  std::error_code error;
  const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* folder : kFolders) {
    const fs::path found = (programs / folder).lexically_normal();
    if (fs::exists(found / "caffe" / "__init__.py", error)) return found.string();
  }
  return "";
}

void FindPackageFirst(const std::string& folder) {
  if (folder.empty()) return;
  const char* path = std::getenv("PYTHONPATH");
  const bool has_path = path != nullptr && *path != '\0';
  const std::string whole = has_path ? folder + ":" + path : folder;
  setenv("PYTHONPATH", whole.c_str(), /*overwrite=*/1);
}

}  // namespace

void AddOptions(std::initializer_list<std::pair<const char*, std::string>> options,
                std::vector<std::string>* words) {
  for (const auto& [option, value] : options) {
    if (!value.empty()) words->push_back(StrCat(option, "=", value));
  }
}

void BecomePython(const std::string& command, const std::string& module,
                  std::vector<std::string> arguments) {
  const char* given = std::getenv("PYTHON");
  const bool is_given = given != nullptr && *given != '\0';
  const std::string interpreter = is_given ? given : "python3";
  FindPackageFirst(FolderOfPackage());
  arguments.insert(arguments.begin(), {interpreter, "-c", kStart, is_given ? "" : kSystemPython,
                                       module, "caffe " + command});
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  execvp(interpreter.c_str(), words.data());
  throw IoError(StrCat("cannot start ", interpreter, ": ", std::strerror(errno),
                       "; this command is written in Python: name an interpreter of Python 3 in "
                       "the environment variable PYTHON"));
}

}  // namespace caffe::tools
