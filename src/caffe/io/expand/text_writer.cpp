#include "caffe/io/expand/text_writer.hpp"

namespace caffe::expand {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kMostBytes = 64 << 20;

// True if a space stands between two tokens of a value.
bool IsSpaced(const Token& left, const Token& right) {
  return !left.Is("-") && !left.Is("[") && !left.Is("{") && !right.Is("]") && !right.Is("}") &&
         !right.Is(",") && !right.Is(":");
}

}  // namespace

TextWriter::TextWriter(SourceText* text) : text_(text) {
  text_->StartExpanded();
}

void TextWriter::Write(const Field& field, int use) {
  WriteLines(field, use);
  RequireAt(field.name.place, text_->text().size() <= kMostBytes, "the net has more than ",
            kMostBytes >> 20, " MiB of text with all blocks expanded; use fewer or smaller ones");
}

void TextWriter::Open(const Field& field) {
  Indent();
  text_->Append(field.name.text, field.name.place, -1);
  text_->AppendBlank(" {\n");
  ++depth_;
}

void TextWriter::Close(const Field& field) {
  --depth_;
  Indent();
  text_->Append("}", field.name.place, -1);
  text_->AppendBlank("\n");
}

void TextWriter::AddPieces(const Field& field, std::vector<Piece>* pieces) {
  pieces->push_back({field.name.text, &field.name.place});
  if (!field.is_message) {
    pieces->push_back({": ", nullptr});
    for (size_t i = 0; i < field.value.size(); ++i) {
      if (i > 0 && IsSpaced(field.value[i - 1], field.value[i])) pieces->push_back({" ", nullptr});
      pieces->push_back({field.value[i].text, &field.value[i].place});
    }
    return;
  }
  pieces->push_back({field.fields.empty() ? " {" : " { ", nullptr});
  for (const Field& inner : field.fields) {
    AddPieces(inner, pieces);
    pieces->push_back({" ", nullptr});
  }
  pieces->push_back({"}", &field.name.place});
}

void TextWriter::WriteLines(const Field& field, int use) {
  std::vector<Piece> pieces;
  AddPieces(field, &pieces);
  size_t width = static_cast<size_t>(depth_) * 2;
  for (const Piece& piece : pieces) width += piece.text.size();
  Indent();
  if (!field.is_message || field.fields.empty() || (depth_ > 0 && width <= kWidth)) {
    for (const Piece& piece : pieces) {
      if (piece.origin == nullptr)
        text_->AppendBlank(piece.text);
      else
        text_->Append(piece.text, *piece.origin, use);
    }
    text_->AppendBlank("\n");
    return;
  }
  text_->Append(field.name.text, field.name.place, use);
  text_->AppendBlank(" {\n");
  ++depth_;
  for (const Field& inner : field.fields) WriteLines(inner, use);
  --depth_;
  Indent();
  text_->Append("}", field.name.place, use);
  text_->AppendBlank("\n");
}

void TextWriter::Indent() {
  text_->AppendBlank(std::string(static_cast<size_t>(depth_) * 2, ' '));
}

}  // namespace caffe::expand
