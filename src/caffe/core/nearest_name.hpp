// "did you mean": finds the candidate that a mistyped name most likely stands for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// If other frameworks use `name`, returns its name here ("InnerProduct" for "Linear"), or an empty
// string if there is no equivalent (names_elsewhere.hpp). Otherwise returns the candidate with the
// fewest edits (insert, delete, replace, swap neighbours; ignoring case) from `name`; the earlier
// one of equals. If even the best one differs in more than a third of its letters, returns the
// shortest candidate that begins with `name` ("Conv" for "Convolution") if `name` has three letters
// or more; else an empty string.
CAFFE_EXPORT std::string NearestName(std::string_view name,
                                     const std::vector<std::string>& candidates);

}  // namespace caffe
