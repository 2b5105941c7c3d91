// Writes fields as the text of a definition and remembers where each token is from.
#pragma once

#include "caffe/io/expand/text_tree.hpp"
#include "caffe/io/source_text.hpp"

namespace caffe::expand {

class TextWriter {
 public:
  // Appends to `text`, which must outlive this object.
  explicit TextWriter(SourceText* text);

  // Messages within others are written on one line if they fit. `use` is the number of the
  // expansion in SourceText, or -1. Throws Mistake if the text becomes longer than any net.
  void Write(const Field& field, int use);

  // Writes a message field by parts: Write() in between adds to it.
  void Open(const Field& field);
  void Close(const Field& field);

 private:
  struct Piece {
    std::string_view text;
    const SourcePlace* origin;
  };

  static void AddPieces(const Field& field, std::vector<Piece>* pieces);
  void WriteLines(const Field& field, int use);
  void Indent();

  SourceText* const text_;
  int depth_ = 0;
};

}  // namespace caffe::expand
