#include "version.h"

const char *fanfare_version(void) { return FANFARE_VERSION; }
