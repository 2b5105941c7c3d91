// caffe data import-text: converts texts to numbers of tokens.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caffe/error.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"
#include "tools/caffe/python_program.hpp"

namespace caffe::tools {
namespace {

// Passes the options to the package caffe.text, which does the work.
class DataImportText : public Command {
 public:
  explicit DataImportText(CLI::App& app) {
    app.add_option("PATHS", paths_, "Text files, then the folder to make")
        ->type_name("TEXT... FOLDER")
        ->default_str("");
    app.add_option("--tokenizer", tokenizer_,
                   "What a token is: characters, bytes, bpe (byte pairs, learned from the text by "
                   "the package tokenizers), sentencepiece, or the path of a tokenizer.json, a "
                   "model of sentencepiece, or a folder made before, for the same vocabulary")
        ->type_name("KIND|PATH")
        ->default_str("characters");
    app.add_option("--vocabulary", vocabulary_, "How many tokens bpe and sentencepiece learn")
        ->type_name("N")
        ->default_str("8000");
    app.add_option_function<std::string>(
           "--val", [this](const std::string& text) { share_ = StrCat(ParseShare(text)); },
           "Put this share, the end of the text, into a second folder, FOLDER_val")
        ->type_name("N%");
    app.add_option("--encoding", encoding_, "How characters are stored in the files")
        ->type_name("NAME")
        ->default_str("utf-8");
  }

  void Run() override {
    Require(paths_.size() >= 2,
            "give one or several texts and the folder to make of them: caffe "
            "data import-text book.txt book");
    Require(!vocabulary_ || *vocabulary_ > 0, "--vocabulary is ", vocabulary_.value_or(0),
            "; give at least 1");
    const bool learns = tokenizer_ == "bpe" || tokenizer_ == "sentencepiece";
    Require(!vocabulary_ || learns, "--vocabulary is ", vocabulary_.value_or(0),
            ", which is for --tokenizer=bpe and sentencepiece; other tokenizers have the tokens "
            "that the text, or their file, has");
    std::vector<std::string> words;
    AddOptions({{"--tokenizer", tokenizer_},
                {"--vocabulary", vocabulary_ ? StrCat(*vocabulary_) : ""},
                {"--share", share_},
                {"--encoding", encoding_}},
               &words);
    words.push_back("--");
    words.insert(words.end(), paths_.begin(), paths_.end());
    BecomePython("data import-text", "caffe.text", std::move(words));
  }

 private:
  std::vector<std::string> paths_;
  std::string tokenizer_, share_, encoding_;
  std::optional<int> vocabulary_;
};

const CommandRegistrar<DataImportText> data_import_text_registrar(
    "data-import-text",
    {.purpose = Purpose::kData,
     .summary = "convert texts to tokens",
     .about = "Divides texts into tokens and writes their numbers into a folder, which the layer "
              "Tokens reads, with the tokenizer, which converts numbers back to text (caffe.text "
              "in Python). Kinds bpe and sentencepiece need the packages tokenizers and "
              "sentencepiece.",
     .examples = "caffe data import-text book.txt book --val=10%\n"
                 "caffe data import-text *.txt corpus --tokenizer=bpe --vocabulary=4000\n"
                 "caffe data import-text new.txt new --tokenizer=corpus"});

}  // namespace
}  // namespace caffe::tools
