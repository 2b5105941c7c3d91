# Doxygen's input filter: the headers' plain comments become documentation. Lines stay lines.
s|^( *)// ?|\1/// |
s|^(.*[;,{})]) +// |\1 ///< |
# Outside of examples, which are indented, what looks like HTML is text.
/^ *\/\/\/ {0,3}[^ ]/s|<([A-Za-z])|\\<\1|g
# A header's first comment ends at its guard.
s|^#pragma once$|/// \\file|
