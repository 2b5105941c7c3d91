#include "tools/caffe/help_format.hpp"

#include <map>
#include <sstream>

#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"

namespace caffe::tools {
namespace {

constexpr size_t kWidth = 80;
constexpr size_t kColumn = 24;  // first column of descriptions

// Wraps `text` to kWidth columns. All lines but the first are indented by `indent` columns; the
// first one starts at that column already.
std::string Wrap(const std::string& text, size_t indent) {
  std::string lines;
  size_t column = indent;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool is_first = column == indent;
    if (!is_first && column + 1 + word.size() > kWidth) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      lines += " ";
      ++column;
    }
    lines += word;
    column += word.size();
  }
  return lines + "\n";
}

std::string Entry(const std::string& name, const std::string& description) {
  const std::string left = "  " + name;
  const std::string gap = left.size() + 2 <= kColumn ? std::string(kColumn - left.size(), ' ')
                                                     : "\n" + std::string(kColumn, ' ');
  return left + gap + Wrap(description, kColumn);
}

std::string FormatOption(const CLI::Option& option) {
  const bool is_flag = option.get_items_expected_max() == 0;
  std::string name = option.nonpositional() ? "--" + option.get_lnames().front()
                                            : option.get_name(/*positional=*/true);
  if (option.nonpositional() && !is_flag) name += "=" + option.get_type_name();
  std::string description = option.get_description();
  if (!option.get_default_str().empty()) {
    description += " (default " + option.get_default_str() + ")";
  }
  return Entry(name, description);
}

}  // namespace

std::string FormatCommands() {
  std::string text =
      "Usage: caffe COMMAND [FILE|FOLDER] [OPTIONS]\n"
      "\n"
      "From photographs to a model: caffe new photos, then caffe train photos_model.\n";
  std::map<Purpose, std::string> parts;
  for (const auto& [name, command] : Commands())
    parts[command.help.purpose] += Entry(WordsOf(name), command.help.summary);
  for (const auto& [purpose, entries] : parts)
    text += StrCat("\n", HeadingOf(purpose), ":\n", entries);
  return text +
         "\n"
         "caffe help COMMAND shows its options with examples, caffe --version the version.\n";
}

std::string FormatGroup(const std::string& group) {
  std::string text = "Usage: caffe " + group + " COMMAND [OPTIONS]\n\nCommands:\n";
  for (const std::string& name : CommandsOfGroup(group)) {
    text += Entry(WordsOf(name), Commands().at(name).help.summary);
  }
  return text + "\ncaffe help " + group + " COMMAND shows its options with examples.\n";
}

std::string FormatCommandHelp(const std::string& name, const CLI::App& app) {
  const std::string words = WordsOf(name);
  const CommandHelp& help = Commands().at(name).help;
  std::string positionals, options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) positionals += " [" + option->get_name(true) + "]";
    if (option != app.get_help_ptr()) options += FormatOption(*option);
  }
  std::string text = "caffe " + words + ": " + help.summary + "\n\n" + Wrap(help.about, 0) +
                     "\nUsage: caffe " + words + positionals +
                     (options.empty() ? "" : " [OPTIONS]") + "\n";
  if (!options.empty()) text += "\nOptions:\n" + options;
  text += "\nExamples:\n";
  std::istringstream examples(help.examples);
  for (std::string line; std::getline(examples, line);) text += "  " + line + "\n";
  return text +
         "\nOne dash is as good as two. --max_decoded_mb and glog's flags (--log_dir, "
         "--minloglevel,\n--v, ...) are taken too.\n";
}

}  // namespace caffe::tools
