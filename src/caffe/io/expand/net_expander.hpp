// Expands one net: finds blocks in files, and writes layers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caffe/io/expand/defaults.hpp"
#include "caffe/io/expand/scope.hpp"
#include "caffe/io/expand/text_tree.hpp"
#include "caffe/io/expand/text_writer.hpp"
#include "caffe/io/source_text.hpp"

namespace caffe::expand {

class NetExpander {
 public:
  // Both must outlive this object.
  NetExpander(SourceText* text, TextWriter* writer) : text_(*text), writer_(*writer) {}

  // Writes the net with these fields. Throws InvalidArgument for a mistake in it, IoError for an
  // include that cannot be read; the text has the uses and includes that led there.
  void Run(const Fields& fields);

 private:
  struct Included {
    std::string path;   // without links
    SourcePlace place;  // the field `include`
  };
  struct NamedLayer {
    int use;
    SourcePlace place;
  };

  void Expand(const Fields& fields);
  void Include(const Field& field);
  const Fields& FieldsOfFile(const std::string& path, const std::string& key, const Field& field);
  void AddBlock(const Field& field);
  void Use(const Field& field, const Scope& scope);
  // Expands the block once.
  void ExpandOnce(const Field& field, const Scope& caller, Scope* scope, int repeat);
  const Block& BlockOf(const Field& field, const Scope& scope) const;
  void RequireNewName(const std::string& name, const SourcePlace& place);
  void Layer(const Field& field, const Scope& scope);
  void RequireNewLayer(const Field& layer, const Scope& scope);
  std::string TextOf(const Mistake& mistake) const;
  std::string IncludeChain() const;

  SourceText& text_;
  TextWriter& writer_;
  Scope net_;
  std::map<std::string, Block> blocks_;
  std::map<std::string, std::unique_ptr<const Fields>> files_;  // by path without links
  Defaults defaults_;
  std::map<std::string, SourcePlace> uses_;  // by complete name
  std::map<std::string, NamedLayer> layers_;
  std::vector<Included> includes_;  // the files that are open, outermost first
  int include_count_ = 0, layer_count_ = 0, use_count_ = 0;
  int use_ = -1;  // the expansion that is being written
};

}  // namespace caffe::expand
