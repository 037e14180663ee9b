const proveKits = require('./prove-kits.cjs')

// Jest has `describe` and `it` as globals.
proveKits({})
