#include "tools/caffe/command_line.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iostream>
#include <new>
#include <sstream>

#include "caffe/common.hpp"
#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/proto/caffe.pb.h"
#include "tools/caffe/help_format.hpp"
#include "tools/caffe/log_flags.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/user_defaults.hpp"
#include "tools/final_error.hpp"

namespace caffe::tools {
namespace {

constexpr const char* kHelpFlags = "--help,--h,--helpshort,--helpfull";

// A dash before a digit starts a negative number, not a flag.
bool IsFlag(const std::string& word) {
  const size_t name = word.find_first_not_of('-');
  return (name == 1 || name == 2) && !std::isdigit(static_cast<unsigned char>(word[name])) &&
         word[name] != '.';
}

bool TakesValue(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

// Replaces -flagfile=FILE and -flagfile FILE with the flags in the file, which has one flag per
// line; # starts a comment. `outer` lists the files that `words` came from, to detect cycles.
std::vector<std::string> ExpandFlagFiles(const std::vector<std::string>& words,
                                         std::vector<std::string> outer = {}) {
  std::vector<std::string> expanded;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string name = IsFlag(word) ? word.substr(word.find_first_not_of('-')) : "";
    if (name != "flagfile" && !name.starts_with("flagfile=")) {
      expanded.push_back(word);
      continue;
    }
    Require(name != "flagfile" || i + 1 < words.size(), "caffe: flag --flagfile needs a value");
    const std::string file = name == "flagfile" ? words[++i] : word.substr(word.find('=') + 1);
    Require(std::find(outer.begin(), outer.end(), file) == outer.end(), file,
            ": names itself by -flagfile; remove that line");
    std::istringstream lines(ReadFile(file));
    std::vector<std::string> flags;
    for (std::string line; std::getline(lines, line);) {
      line = CLI::detail::trim(line);
      if (IsFlag(line)) flags.push_back(line);
    }
    outer.push_back(file);
    flags = ExpandFlagFiles(flags, outer);
    outer.pop_back();
    expanded.insert(expanded.end(), flags.begin(), flags.end());
  }
  return expanded;
}

std::vector<std::string> FlagNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  return names;
}

std::string Suggest(const std::string& name, const std::vector<std::string>& candidates,
                    const std::string& dashes) {
  const std::string near = NearestName(name, candidates);
  return near.empty() ? "" : "; did you mean '" + dashes + near + "'?";
}

// Like CLI11's get_option_no_throw(), which ends the program if memory allocation fails.
const CLI::Option* FindOption(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->check_name(name)) return option;
  }
  return nullptr;
}

// True for the commands of Caffe's own program, whose flags belong to all of them: old scripts give
// some that a command does not read.
bool IsOfCaffe(const std::string& command) {
  constexpr std::array kCommands = {"train", "test", "time", "device_query"};
  return std::ranges::find(kCommands, command) != kCommands.end();
}

}  // namespace

CommandLine::CommandLine() {
  app_.require_subcommand(0, 1);  // a later word is not a second command
  app_.set_help_flag(kHelpFlags);
  app_.set_version_flag("--version", std::string("caffe version ") + Version());
  app_.option_defaults()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->always_capture_default();
  AddLogFlags(app_);
  AddDecodeLimit(app_);
  for (const auto& [name, entry] : Commands()) {
    CLI::App* app = app_.add_subcommand(name, entry.help.summary);
    app->set_help_flag(kHelpFlags);
    commands_[name] = entry.make(*app);
  }
}

// An option with this name of any command; all agree on whether the flag takes a value.
const CLI::Option* CommandLine::Find(const std::string& flag) const {
  if (const CLI::Option* option = FindOption(app_, "--" + flag)) return option;
  for (const CLI::App* app : app_.get_subcommands({})) {
    if (const CLI::Option* option = FindOption(*app, "--" + flag)) return option;
  }
  return nullptr;
}

// The commands that take a flag.
std::vector<std::string> CommandLine::Takers(const std::string& flag) const {
  std::vector<std::string> names;
  for (const CLI::App* app : app_.get_subcommands({})) {
    if (FindOption(*app, "--" + flag) != nullptr) names.push_back(WordsOf(app->get_name()));
  }
  return names;
}

CommandLine::Flag CommandLine::ParseFlag(const std::string& word) const {
  const size_t begin = word.find_first_not_of('-'), equals = word.find('=');
  Flag flag{word.substr(begin, equals == std::string::npos ? equals : equals - begin), {}};
  if (equals != std::string::npos) flag.value = word.substr(equals + 1);
  if (Find(flag.name) == nullptr && flag.name.starts_with("no") && !flag.value) {
    const CLI::Option* negated = Find(flag.name.substr(2));
    if (negated != nullptr && !TakesValue(*negated)) return {flag.name.substr(2), "false"};
  }
  return flag;
}

void CommandLine::Separate(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (!IsFlag(words[i])) {
      plain_words_.push_back(words[i]);
      continue;
    }
    Flag flag = ParseFlag(words[i]);
    const CLI::Option* option = Find(flag.name);
    if (option != nullptr && TakesValue(*option) && !flag.value) {
      Require(i + 1 < words.size(), "caffe: flag --", flag.name, " needs a value");
      flag.value = words[++i];
    }
    flags_.push_back(flag);
  }
}

void CommandLine::JoinWords(size_t first) {
  if (plain_words_.size() < first + 2) return;
  const std::string name = plain_words_[first] + "-" + plain_words_[first + 1];
  if (Commands().count(name) == 0) return;
  plain_words_[first] = name;
  plain_words_.erase(plain_words_.begin() + static_cast<ptrdiff_t>(first) + 1);
}

void CommandLine::FindCommand() {
  if (plain_words_.empty()) return;
  JoinWords(plain_words_[0] == "help" ? 1 : 0);
  const bool is_group = !CommandsOfGroup(plain_words_[0]).empty();
  if (is_group && plain_words_.size() == 1) {
    answer_ = FormatGroup(plain_words_[0]);
    return;
  }
  RequireCommand(is_group ? plain_words_[0] + "-" + plain_words_[1] : plain_words_[0]);
  command_app_ = app_.get_subcommand(plain_words_[0]);
}

// Adds the command's flags from the user's configuration, except for flags that the command line
// gives.
void CommandLine::AddDefaults(std::vector<std::string>* for_command) {
  if (command_app_ == nullptr) return;
  for (const FlagDefault& flag : UserDefaults::Get().content().flag()) {
    const bool is_for_all = flag.command().empty();
    if (!is_for_all && flag.command() != WordsOf(command_app_->get_name())) continue;
    const CLI::Option* const option = FindOption(*command_app_, "--" + flag.name());
    Require(option != nullptr || is_for_all, UserDefaults::Get().file(), ": caffe ", flag.command(),
            " has no flag --", flag.name(), "; see caffe help ", flag.command());
    const bool is_given = std::any_of(flags_.begin(), flags_.end(), [&](const Flag& given) {
      return option != nullptr && option->check_name("--" + given.name);
    });
    if (option == nullptr || is_given) continue;
    for_command->push_back("--" + flag.name() + "=" + flag.value());
    notes_.push_back(StrCat(UserDefaults::Get().file(), ": --", flag.name(), "=", flag.value()));
  }
}

// Suggests "-n 3" for the word 3 if exactly one flag of the command takes a number; else empty.
std::string CommandLine::FlagOfNumber(const std::string& word) const {
  if (word.find_first_not_of("0123456789") != std::string::npos) return "";
  std::vector<std::string> names;
  for (const CLI::Option* option : command_app_->get_options()) {
    if (option->get_type_name() == "N") names.push_back(option->get_lnames().front());
  }
  if (names.size() != 1) return "";
  return (names[0].size() == 1 ? "-" : "--") + names[0] + " " + word;
}

// Rejects words after the command that its positional options do not take.
void CommandLine::CheckPlainWords() const {
  size_t places = 0;
  bool takes_assignments = false;      // words such as base_lr=0.1
  const CLI::Option* given = nullptr;  // a positional option that was given as a flag
  for (const CLI::Option* option : command_app_->get_options()) {
    const bool is_given = std::any_of(flags_.begin(), flags_.end(), [&](const Flag& flag) {
      return option->check_lname(flag.name);
    });
    if (option->get_positional() && is_given) given = option;
    if (option->get_positional() && !is_given) {
      takes_assignments |= option->get_type_name().find('=') != std::string::npos;
      places += static_cast<size_t>(option->get_items_expected_max());
    }
  }
  for (size_t i = 1; i < plain_words_.size(); ++i) {
    const std::string& word = plain_words_[i];
    const size_t equals = word.find('=');
    const bool lacks_dashes = !takes_assignments && equals != std::string::npos &&
                              Find(word.substr(0, equals)) != nullptr;
    const std::string flag = lacks_dashes ? "--" + word : FlagOfNumber(word);
    Require(i <= places && !lacks_dashes, "caffe ", WordsOf(command_app_->get_name()), ": '", word,
            "' is neither a flag nor its value; ",
            !flag.empty()      ? "did you mean '" + flag + "'?"
            : given != nullptr ? "--" + given->get_lnames().front() +
                                     " is given already, so leave out one of the two"
                               : "flags begin with a dash, lists have no spaces");
  }
}

void CommandLine::ThrowUnknownFlag(const Flag& flag) const {
  const std::string& name = flag.name;
  std::vector<std::string> names = FlagNames(app_);
  if (command_app_ != nullptr) names = FlagNames(*command_app_);
  std::string near;
  const bool takes_solver = std::count(names.begin(), names.end(), "solver") > 0 &&
                            std::count(names.begin(), names.end(), "set") > 0;
  if (takes_solver && SolverParameter::descriptor()->FindFieldByName(name) != nullptr) {
    near = "; did you mean '--set " + name + "=" + flag.value.value_or("VALUE") + "'?";
  }
  if (near.empty()) near = Suggest(name, names, "--");
  if (near.empty()) near = Suggest(name, FlagNames(app_), "--");
  const std::string command =
      command_app_ != nullptr ? " " + WordsOf(command_app_->get_name()) : "";
  const std::vector<std::string> takers = Takers(name);
  if (!takers.empty()) near = ", one of caffe " + CLI::detail::join(takers, ", ") + near;
  throw InvalidArgument("caffe" + command + ": unknown flag --" + name + near + "; caffe help" +
                        command + " lists what there is");
}

void CommandLine::AddFlag(const Flag& flag, std::vector<std::string>* for_all,
                          std::vector<std::string>* for_command) {
  const std::string name = "--" + flag.name;
  const CLI::Option* option = command_app_ != nullptr ? FindOption(*command_app_, name) : nullptr;
  std::vector<std::string>* words = option != nullptr ? for_command : for_all;
  if (option == nullptr) option = FindOption(app_, name);
  if (option == nullptr) {
    const std::vector<std::string> takers = Takers(flag.name);
    if (std::ranges::none_of(takers, IsOfCaffe)) ThrowUnknownFlag(flag);
    warnings_.push_back("caffe " + (command_app_ ? WordsOf(command_app_->get_name()) : "") + ": " +
                        name + " is ignored, a flag of caffe " + CLI::detail::join(takers, ", "));
  } else if (TakesValue(*option)) {
    words->insert(words->end(), {name, *flag.value});
  } else {
    words->push_back(flag.value ? name + "=" + *flag.value : name);
  }
}

void CommandLine::ParseByCli11(std::vector<std::string> words) {
  const std::string name = command_app_ != nullptr ? command_app_->get_name() : "";
  std::reverse(words.begin(), words.end());  // CLI11's order
  try {
    app_.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    if (answer_.empty())
      answer_ = name.empty() ? FormatCommands() : FormatCommandHelp(name, *command_app_);
  } catch (const CLI::CallForVersion& version) {
    answer_ = std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& error) {
    const std::string words = WordsOf(name);
    throw InvalidArgument("caffe " + words + ": " + error.what() + "; caffe help " + words +
                          " lists the options");
  } catch (const InvalidArgument& error) {
    throw InvalidArgument("caffe " + WordsOf(name) + ": " + error.what());
  }
}

void CommandLine::Parse(const std::vector<std::string>& given) {
  const std::vector<std::string> words = ExpandFlagFiles(given);
  Separate(words);
  FindCommand();
  std::vector<std::string> line, for_command;
  AddDefaults(&for_command);
  for (const Flag& flag : flags_) AddFlag(flag, &line, &for_command);
  if (command_app_ != nullptr) {
    CheckPlainWords();
    line.insert(line.end(), plain_words_.begin(), plain_words_.end());
    line.insert(line.end(), for_command.begin(), for_command.end());
  }
  ParseByCli11(line);
  if (words.empty()) answer_ = FormatCommands();
  Require(command_app_ != nullptr || !answer_.empty(),
          "caffe: there are flags but no command; give one, as in caffe train --solver=FILE");
}

int CommandLine::Run() {
  const std::string name = command_app_ != nullptr ? plain_words_[0] : "help";
  try {
    if (answer_.empty()) {
      LoadGivenPlugins();
      commands_.at(name)->Run();
    } else {
      std::cout << answer_;
    }
    if (!std::cout.flush()) throw IoError("standard output: cannot write; is the disk full?");
    return 0;
  } catch (const std::bad_alloc&) {
    ReportFinalError("caffe", "caffe " + WordsOf(name) +
                                  ": the machine's memory is used up; lower batch_size or prefetch "
                                  "(caffe plan shows what a net needs)");
    return 1;
  } catch (const std::exception& error) {
    ReportFinalError("caffe", "caffe " + WordsOf(name) + ": " + error.what());
    return 1;
  }
}

}  // namespace caffe::tools
