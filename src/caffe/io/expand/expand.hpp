// Short nets: includes, blocks with arguments, repetition, and defaults for layers of a type
// (docs/short_nets.md). They are expanded in the text, before it is parsed.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>

#include "caffe/export.hpp"
#include "caffe/io/source_text.hpp"

namespace caffe {

// Reads the text of a definition of type `root`. That of a net or a solver is expanded if it has
// fields of short nets; any other text is returned as it is. Throws IoError if a file cannot be
// read, InvalidArgument for mistakes in blocks and in their use.
CAFFE_EXPORT SourceText ReadDefinitionText(const std::string& path,
                                           const google::protobuf::Descriptor& root);

// True if a net in the text has a field of short nets: include, defaults, block or use. `root` is
// the type of the whole text.
bool HasShortNet(std::string_view text, const google::protobuf::Descriptor& root);

}  // namespace caffe
