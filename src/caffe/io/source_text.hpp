// The text of a definition, with the places that its parts come from.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

struct SourceFile {
  std::string path;
  std::string text;  // without a byte order mark
};

// A place in a file. Lines and columns count from 0; a tab advances the column to the next multiple
// of 8, as protobuf counts.
struct SourcePlace {
  const SourceFile* file = nullptr;
  int line = 0;
  int column = 0;
};

// Returns "FILE:LINE:COLUMN"; lines and characters count from 1.
std::string TextOfPlace(const SourcePlace& place);

// Returns "FILE:LINE:COLUMN: what" with the line and a caret below it.
std::string ErrorAt(const SourcePlace& place, const std::string& what);

// Returns line `line`, from 0, without its end.
std::string_view LineOfText(std::string_view text, int line);

// Converts a column as counted by protobuf to one from 1 in characters.
int ColumnInText(std::string_view text, int line, int column);
// The reverse: protobuf's column of byte number `byte`, from 0, in line `line`, from 0.
int ColumnOfByte(std::string_view text, int line, int byte);

// One expansion of a block (docs/short_nets.md).
struct BlockUse {
  int caller = -1;    // the expansion that contains this one; -1: the net itself
  SourcePlace place;  // the field `use`
  int index = 1, repeat = 1;
};

// A text that is a file's, or that was made of several files by expanding blocks.
class CAFFE_EXPORT SourceText {
 public:
  // Throws InvalidArgument for what is not text.
  SourceText(const std::string& path, std::string_view text);
  SourceText(SourceText&&) = default;

  const std::string& text() const { return is_expanded_ ? expanded_ : files_.front()->text; }
  const SourceFile& main_file() const { return *files_.front(); }
  bool is_expanded() const { return is_expanded_; }

  // Where the token at or before this position of text() was written.
  SourcePlace Origin(int line, int column) const;
  // The uses of blocks that made the token, innermost first: "; used at FILE:LINE:COLUMN (repeat 2
  // of 12), used at ...". Empty for others.
  std::string ChainAt(int line, int column) const;
  // The same for the expansion with this number; empty for -1.
  std::string Chain(int use) const;

  // For expanding. All places stay valid as long as this object.
  const SourceFile& AddFile(const std::string& path, std::string_view text);
  int AddUse(const BlockUse& use);
  void StartExpanded() { is_expanded_ = true; }
  void Append(std::string_view part, const SourcePlace& origin, int use);
  void AppendBlank(std::string_view blank);

  // The layer types for which the text has defaults.
  struct TypeOfDefaults {
    std::string type;
    SourcePlace place;
  };
  std::vector<TypeOfDefaults> types_of_defaults;

 private:
  struct Mark {
    int line, column;  // start of a token in text()
    int use;
    SourcePlace origin;
  };

  const Mark* MarkAt(int line, int column) const;
  void Advance(std::string_view part);

  std::vector<std::unique_ptr<SourceFile>> files_;
  std::vector<BlockUse> uses_;
  std::string expanded_;
  std::vector<Mark> marks_;  // in the order of text()
  int line_ = 0, column_ = 0;
  bool is_expanded_ = false;
};

}  // namespace caffe
