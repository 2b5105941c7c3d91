// The secret of a user, for runs that are given none.
#pragma once

#include <string>

namespace caffe {

// Returns the content of the file. If it does not exist, creates it with random content, readable
// by its owner only. Throws IoError if it cannot be created, belongs to another user, or others can
// read it.
std::string SecretInFile(const std::string& path);

// Returns CAFFE_SECRET, or else the content of cortado/secret in $XDG_CACHE_HOME, or in
// $HOME/.cache. Throws what SecretInFile() throws, and InvalidArgument if none of the three is set.
std::string SecretOfUser();

}  // namespace caffe
