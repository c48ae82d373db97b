package nn

// What tests outside of the package hold to the laws by itself.
type HeadMean = headMean

var NewEncoder = newEncoder
