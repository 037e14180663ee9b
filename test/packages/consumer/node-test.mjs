import { describe, it } from 'node:test'
import proveKits from './prove-kits.cjs'

proveKits({ describe, it })

process.on('exit', (code) => {
  if (code === 0) console.log('node:test: ok')
})
