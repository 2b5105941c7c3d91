// A text as numbers of its tokens, in a folder that `caffe data import-text` makes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "caffe/core/file_descriptor.hpp"

namespace caffe::data {

// tokens.json says how many tokens there are, of how many kinds, and how many bytes each takes;
// tokens.bin has their numbers, little-endian. Tokens are read when they are needed, not mapped:
// a file that is cut off while it is read gives an error, not a signal.
class TokenFile {
 public:
  // Throws IoError if a file is missing, damaged, or of a newer version.
  explicit TokenFile(const std::string& folder);

  uint64_t count() const { return facts_.count; }
  // Kinds of tokens: their numbers are from 0 to this - 1.
  uint32_t vocabulary() const { return facts_.vocabulary; }
  // Equal for texts that were made with the same tokenizer, whose numbers mean the same.
  const std::string& tokenizer() const { return facts_.tokenizer; }

  // Puts the `count` tokens from `first` on into `numbers`. Throws IoError if they cannot be read,
  // or if one is not in the vocabulary.
  void Read(uint64_t first, uint64_t count, float* numbers);

 private:
  // The contents of tokens.json.
  struct Facts {
    uint64_t count = 0;
    uint32_t vocabulary = 0, bytes_per_token = 0;
    std::string tokenizer;
  };

  static Facts ReadFacts(const std::string& file);

  const Facts facts_;
  const std::string path_;  // of tokens.bin
  const FileDescriptor file_;
  std::vector<unsigned char> block_;
};

}  // namespace caffe::data
