// caffe completion: prints a script that lets a shell complete commands, flags, values and files.
#include <iostream>
#include <map>

#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"

namespace caffe::tools {
namespace {

// The script needs _caffe_flags COMMAND and _caffe_values "COMMAND FLAG" before it: they print a
// list of words, or "files PATTERN". Bash splits the words of a line at '=', zsh does not.
constexpr const char* kScript = R"(
_caffe() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"
  local command='' flag='' prefix='' values='' word
  for word in "${COMP_WORDS[@]:1:$((COMP_CWORD-1))}"; do
    if [[ " $_caffe_commands " == *" $command-$word "* ]]; then command+=-$word; fi
    if [[ -z $command && " $_caffe_words " == *" $word "* ]]; then command=$word; fi
  done
  if [[ $current == '=' ]]; then
    flag=$previous current=''
  elif [[ $previous == '=' ]]; then
    flag=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $current == -*=* ]]; then
    flag=${current%%=*} prefix=${current%%=*}= current=${current#*=}
  elif [[ $previous == -* ]]; then
    flag=$previous
  fi
  [[ $flag == -[!-]* ]] && flag=-$flag
  [[ -n $flag ]] && values=$(_caffe_values "$command $flag")
  if [[ -z $values && $current == -* ]]; then
    values=$(_caffe_flags "$command")
    [[ $current != --* ]] && values=${values//--/-}
    COMPREPLY=( $(compgen -W "$values" -- "$current") )
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
    return 0
  fi
  [[ -z $values ]] && values=$(_caffe_values "$command ")
  if [[ $values == 'files '* ]]; then
    local IFS=$'\n'
    COMPREPLY=( $(compgen -P "$prefix" -d -- "$current"; compgen -P "$prefix" -f -X "!${values#files }" -- "$current") )
    compopt -o filenames 2>/dev/null
  else
    COMPREPLY=( $(compgen -P "$prefix" -W "$values" -- "$current") )
  fi
  return 0
}
complete -F _caffe caffe
)";

// The words that complete an option's value, derived from the name of its type.
std::string ValuesOf(const CLI::Option& option) {
  std::string type = option.get_type_name();
  if (type == "FOLDER") return "files *";
  if (type.starts_with("FILE")) return "files *" + type.substr(4) + "*";
  if (type.find('|') == std::string::npos) return "";
  for (char& letter : type) letter = letter == '|' ? ' ' : letter;
  return type;
}

std::string Case(const std::string& pattern, const std::string& words) {
  return words.empty() ? "" : "    '" + pattern + "') echo '" + words + "' ;;\n";
}

std::string FlagsOf(const CLI::App& command) {
  std::string flags;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->nonpositional()) continue;
    const bool takes_value = option->get_items_expected_max() > 0;
    flags += "--" + option->get_lnames().front() + (takes_value ? "= " : " ");
  }
  return flags;
}

std::string ValueCases(const CLI::App& command) {
  std::string cases;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    const std::string of = command.get_name() + " ";
    if (option->get_positional()) cases += Case(of, ValuesOf(*option));
    if (option->nonpositional()) {
      cases += Case(of + "--" + option->get_lnames().front(), ValuesOf(*option));
    }
  }
  return cases;
}

std::string BashScript(const CLI::App& root) {
  const std::string commands = CLI::detail::join(CommandNames(), " ");
  std::map<std::string, std::string> groups;
  for (const std::string& name : CommandNames()) {
    const std::string group = GroupOf(name);
    if (!group.empty()) groups[group] += name.substr(group.size() + 1) + " ";
  }
  std::string words = commands, group_values;
  for (const auto& [group, names] : groups) {
    words += " " + group;
    group_values += Case(group + " ", names);
  }
  std::string flags = Case("", "--help --version"), values = Case(" ", words) + group_values;
  for (const CLI::App* command : root.get_subcommands({})) {
    flags += Case(command->get_name(), FlagsOf(*command));
    values += ValueCases(*command);
  }
  return "_caffe_commands='" + commands + "'\n_caffe_words='" + words +
         "'\n_caffe_flags() {\n  case \"$1\" in\n" + flags +
         "  esac\n}\n_caffe_values() {\n  case \"$1\" in\n" + values + "  esac\n}" + kScript;
}

class Completion : public Command {
 public:
  explicit Completion(CLI::App& app) : app_(app) {
    app.add_option("SHELL", shell_, "The shell: bash or zsh")->type_name("bash|zsh");
  }

  void Run() override {
    Require(shell_ == "bash" || shell_ == "zsh", "the shell is '", shell_, "'; give bash or zsh");
    if (shell_ == "zsh") std::cout << "autoload -U +X bashcompinit && bashcompinit\n";
    std::cout << BashScript(*app_.get_parent());
  }

 private:
  const CLI::App& app_;
  std::string shell_;
};

const CommandRegistrar<Completion> completion_registrar(
    "completion",
    {.purpose = Purpose::kProgram,
     .summary = "print a shell's completion script",
     .about = "Prints a script by which bash or zsh completes commands, flags, their values and "
              "files with the Tab key. Put the first example into ~/.bashrc, the second into "
              "~/.zshrc after compinit.",
     .examples = "source <(caffe completion bash)\n"
                 "source <(caffe completion zsh)"});

}  // namespace
}  // namespace caffe::tools
