#pragma once

/// Returns the version of this program. It is set when the program is built: `FANFARE_VERSION` in the environment of the
/// build, which `.ci/package` takes from the tag.
const char *fanfare_version(void);
