#include "caffe/io/expand/net_expander.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "caffe/core/nearest_name.hpp"
#include "caffe/core/paths.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/expand/block_use.hpp"
#include "caffe/io/text_nesting.hpp"

namespace caffe::expand {
namespace {

namespace fs = std::filesystem;
using google::protobuf::io::Tokenizer;

constexpr int kMostIncludes = 1000;  // of a net in all
constexpr size_t kDeepestInclude = 20;
constexpr uint64_t kMostBytesOfFile = 64 << 20;

std::string PathWithoutLinks(const std::string& path) {
  std::error_code unknown;
  const fs::path canonical = fs::weakly_canonical(path, unknown);
  return unknown ? path : canonical.string();
}

enum class Names { kOfLayer, kOfParameter, kNone };

// A copy of the field with all references replaced, and in layers of blocks with complete names.
Field Resolved(const Field& field, const Scope& scope, Names names) {
  Field result{field.name, {}, {}, field.is_message};
  const std::string& name = field.name.text;
  const bool is_named = scope.block != nullptr && names != Names::kNone;
  if (field.is_message) {
    const Names inner =
        names == Names::kOfLayer && name == "param" ? Names::kOfParameter : Names::kNone;
    for (const Field& one : field.fields) result.fields.push_back(Resolved(one, scope, inner));
  } else if (is_named && names == Names::kOfLayer && (name == "bottom" || name == "top")) {
    const Tokens blobs = scope.BlobsOf(field);
    result.value = {{Tokenizer::TYPE_SYMBOL, "[", field.name.place}};
    for (const Token& blob : blobs) {
      if (result.value.size() > 1)
        result.value.push_back({Tokenizer::TYPE_SYMBOL, ",", blob.place});
      result.value.push_back(blob);
    }
    result.value.push_back({Tokenizer::TYPE_SYMBOL, "]", field.name.place});
    if (blobs.size() == 1) result.value = blobs;
  } else if (is_named && name == "name") {
    const std::string complete = scope.NameOf(field);
    result.value = {Quoted(complete, field.value.front().place)};
  } else {
    result.value = scope.Substitute(field.value);
    if (result.value.size() > 1 && result.value.front().Is("{")) {
      Tokens inner(result.value.begin() + 1, result.value.end() - 1);
      inner.push_back({Tokenizer::TYPE_END, "", field.name.place});
      result.fields = ParseFields(inner);
      result.is_message = true;
      result.value.clear();
    }
  }
  return result;
}

// The text of a field with one string; empty without it.
std::string TextOfField(const Fields& fields, std::string_view name) {
  const Field* field = Find(fields, name);
  const bool is_text = field != nullptr && field->value.size() == 1 && field->value[0].is_string();
  return is_text ? Unquoted(field->value[0]) : "";
}

bool IsCondition(const Field& field) {
  return field.name.text == "include" || field.name.text == "exclude";
}

// The conditions of a use, or those of the use around it if it has none.
Fields ConditionsOf(const Field& use, const Scope& scope) {
  Fields conditions;
  for (const Field& field : use.fields) {
    if (!IsCondition(field)) continue;
    RequireAt(field.name.place, field.is_message, "write ", field.name.text,
              " { phase: TRAIN }: a file is included at the top of a net");
    conditions.push_back(Resolved(field, scope, Names::kNone));
  }
  return conditions.empty() ? scope.conditions : conditions;
}

}  // namespace

void NetExpander::Run(const Fields& fields) {
  try {
    Expand(fields);
  } catch (const Mistake& mistake) {
    throw InvalidArgument(TextOf(mistake));
  }
}

void NetExpander::Expand(const Fields& fields) {
  for (const Field& field : fields) {
    const std::string& name = field.name.text;
    if (name == "include") {
      Include(field);
    } else if (name == "block") {
      AddBlock(field);
    } else if (name == "use") {
      Use(field, net_);
    } else if (name == "defaults") {
      const Field resolved = Resolved(field, net_, Names::kNone);
      text_.types_of_defaults.push_back({defaults_.Add(resolved), field.name.place});
    } else if (name == "layer") {
      Layer(field, net_);
    } else if (name == "layers") {
      throw Mistake{field.name.place,
                    "a net with include, defaults, block or use takes `layer`, not the older "
                    "`layers`; convert the file first: upgrade_net_proto_text OLD NEW"};
    } else {
      writer_.Write(Resolved(field, net_, Names::kNone), -1);
    }
  }
}

void NetExpander::Include(const Field& field) {
  const SourcePlace& place = field.name.place;
  RequireAt(place, field.value.size() == 1 && field.value[0].is_string(),
            "include takes the name of a file between quotes: include: \"blocks.prototxt\"");
  const std::string named = Unquoted(field.value[0]);
  RequireAt(place, !named.empty() && !HasControlCharacters(named), "include is '", Printable(named),
            "', which is not a name of a file");
  const std::string path = (fs::path(place.file->path).parent_path() / named).string();
  const std::string key = PathWithoutLinks(path);
  bool is_open = key == PathWithoutLinks(text_.main_file().path);
  for (const Included& one : includes_) is_open = is_open || one.path == key;
  RequireAt(place, !is_open, path, " includes itself; remove one of the includes");
  RequireAt(place, includes_.size() < kDeepestInclude, "includes are nested more than ",
            kDeepestInclude, " deep");
  RequireAt(place, ++include_count_ <= kMostIncludes, "this net has more than ", kMostIncludes,
            " includes");
  const Fields& fields = FieldsOfFile(path, key, field);
  includes_.push_back({key, place});
  Expand(fields);
  includes_.pop_back();
}

const Fields& NetExpander::FieldsOfFile(const std::string& path, const std::string& key,
                                        const Field& field) {
  if (const auto found = files_.find(key); found != files_.end()) return *found->second;
  RequireAt(field.name.place, IsMissing(path) || IsPlainFile(path), path,
            " is not a file that can be included: a folder, a pipe or a device");
  std::string text;
  try {
    text = ReadFile(path, kMostBytesOfFile);
  } catch (const IoError& error) {
    throw IoError(TextOf({field.name.place, error.what()}));
  }
  const SourceFile& file = text_.AddFile(path, text);
  includes_.push_back({key, field.name.place});  // for the text of a Mistake
  auto& kept = files_[key];
  kept = std::make_unique<const Fields>(ParseFields(Tokenize(file.text, file)));
  includes_.pop_back();
  return *kept;
}

void NetExpander::AddBlock(const Field& field) {
  const Block block = ReadBlock(field);
  const auto [at, is_new] = blocks_.emplace(block.name, block);
  // A file that two others include has its blocks twice.
  RequireAt(field.name.place, is_new || at->second.body == block.body, "block '", block.name,
            "' is there twice, first at ", TextOfPlace(at->second.place),
            "; give one another name");
}

const Block& NetExpander::BlockOf(const Field& field, const Scope& scope) const {
  const Field* named = Find(field.fields, "block");
  if (named == nullptr) {
    const bool is_empty = field.fields.empty();
    throw Mistake{is_empty ? field.name.place : field.fields[0].name.place,
                  StrCat("this use names no block",
                         is_empty ? "" : StrCat(", but has '", field.fields[0].name.text, "'"),
                         "; write use { block: \"...\" name: \"...\" }")};
  }
  const std::string name = scope.TextOf(*named);
  const auto found = blocks_.find(name);
  if (found != blocks_.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, block] : blocks_) known.push_back(other);
  const std::string near = NearestName(name, known);
  std::string hint = known.empty() ? "; define it before its use, or include the file that does"
                                   : "; the blocks so far are";
  for (size_t i = 0; i < std::min<size_t>(known.size(), 12); ++i)
    hint += (i == 0 ? " " : ", ") + known[i];
  throw Mistake{named->name.place,
                StrCat("there is no block '", name, "'",
                       near.empty() ? hint : StrCat("; did you mean '", near, "'?"))};
}

void NetExpander::RequireNewName(const std::string& name, const SourcePlace& place) {
  const auto [other, is_new] = uses_.emplace(name, place);
  if (is_new) return;
  RequireAt(place, false, "two uses are called '", name, "', the other one at ",
            TextOfPlace(other->second), "; give one another name");
}

void NetExpander::Use(const Field& field, const Scope& scope) {
  const SourcePlace& place = field.name.place;
  RequireAt(place, field.is_message, "write use { block: \"...\" name: \"...\" }");
  const Block& block = BlockOf(field, scope);
  std::string way = block.name;
  int depth = 0;
  for (const Scope* outer = &scope; outer->block != nullptr; outer = outer->caller, ++depth) {
    way = outer->block->name + " -> " + way;
    RequireAt(place, outer->block != &block, "block '", block.name, "' uses itself: ", way);
  }
  RequireAt(place, depth < kMostNesting, "blocks use each other more than ", kMostNesting, " deep");
  const UseOfBlock use = ReadUse(field, block, scope);
  RequireNewName(use.name, place);
  const auto repeat = static_cast<int>(use.repeat.value_or(1));
  const Fields conditions = ConditionsOf(field, scope);
  std::vector<std::string> bottoms = use.bottoms;
  for (int index = 1; index <= repeat; ++index) {
    const std::string name = use.repeat ? StrCat(use.name, "/", index) : use.name;
    Scope inner;
    inner.block = &block;
    inner.caller = &scope;
    inner.prefix = name + "/";
    inner.arguments = use.arguments;
    inner.bottoms = bottoms;
    inner.index = index;
    inner.conditions = conditions;
    for (size_t i = 0; i < use.tops.size(); ++i) {
      const std::string made = i == 0 ? name : StrCat(name, "/out", i + 1);
      inner.tops.push_back(index == repeat ? use.tops[i] : made);
      if (i < bottoms.size()) bottoms[i] = inner.tops.back();
    }
    ExpandOnce(field, scope, &inner, repeat);
  }
}

void NetExpander::ExpandOnce(const Field& field, const Scope& caller, Scope* scope, int repeat) {
  RequireAt(field.name.place, ++use_count_ <= kMostLayers, "this net has more than ", kMostLayers,
            " expansions of blocks");
  scope->use = text_.AddUse({caller.use, field.name.place, static_cast<int>(scope->index), repeat});
  use_ = scope->use;
  for (const Block::Argument& argument : scope->block->arguments) {
    if (scope->arguments.contains(argument.name.text)) continue;
    scope->arguments.emplace(argument.name.text, scope->Evaluate(*argument.default_value));
  }
  for (const Field& part : *scope->block->body) {
    if (part.name.text == "layer") Layer(part, *scope);
    if (part.name.text == "use") Use(part, *scope);
  }
  use_ = caller.use;
}

void NetExpander::Layer(const Field& field, const Scope& scope) {
  RequireAt(field.name.place, field.is_message, "write layer { ... }");
  RequireAt(field.name.place, ++layer_count_ <= kMostLayers, "this net has more than ", kMostLayers,
            " layers with all blocks expanded; use fewer or smaller blocks");
  Field layer{field.name, {}, {}, true};
  for (const Field& one : field.fields)
    layer.fields.push_back(Resolved(one, scope, Names::kOfLayer));
  RequireNewLayer(layer, scope);
  defaults_.Complete(TextOfField(layer.fields, "type"), &layer.fields);
  if (std::none_of(layer.fields.begin(), layer.fields.end(), IsCondition)) {
    layer.fields.insert(layer.fields.end(), scope.conditions.begin(), scope.conditions.end());
  }
  writer_.Write(layer, scope.use);
}

void NetExpander::RequireNewLayer(const Field& layer, const Scope& scope) {
  const std::string name = TextOfField(layer.fields, "name");
  if (name.empty()) return;
  const auto [other, is_new] = layers_.emplace(name, NamedLayer{scope.use, layer.name.place});
  // Layers of one net or block may have the same name if they are of different phases.
  if (is_new || other->second.use == scope.use) return;
  RequireAt(layer.name.place, false, "layer '", name,
            "' is there twice with all blocks expanded, first at ",
            TextOfPlace(other->second.place), text_.Chain(other->second.use),
            "; give a layer or a use another name");
}

std::string NetExpander::TextOf(const Mistake& mistake) const {
  return ErrorAt(mistake.place, mistake.what + text_.Chain(use_) + IncludeChain());
}

std::string NetExpander::IncludeChain() const {
  std::string chain;
  for (auto one = includes_.rbegin(); one != includes_.rend(); ++one)
    chain += StrCat(chain.empty() ? "; " : ", ", "included at ", TextOfPlace(one->place));
  return chain;
}

}  // namespace caffe::expand
