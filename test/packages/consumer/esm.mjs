import prove from './prove.cjs'

await prove((name) => import(name))
console.log('esm: ok')
