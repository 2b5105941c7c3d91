// Which iterations how many ranks have made: a text file beside the snapshots.
//
//     iteration 0: 3 ranks
//     iteration 57: 2 ranks, because rank 2 (host b, process 911): has ended without a word
#pragma once

#include <string>
#include <vector>

namespace caffe {

struct MembershipEntry {
  int iteration = 0;  // the first that these ranks make
  int ranks = 1;
  std::string why = {};  // there are fewer than before; one line, or empty
};

// Replaces entries of the same iteration and later ones, which no longer count. Throws IoError.
void AddMembership(const std::string& file, const MembershipEntry& entry);

// By rising iteration. Throws IoError, with file and line where one is none.
std::vector<MembershipEntry> ReadMembership(const std::string& file);

}  // namespace caffe
