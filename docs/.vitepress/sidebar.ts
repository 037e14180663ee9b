export const nav = [{ text: 'Options', link: '/options' }]
export const sidebar = [{ text: 'Guides', items: [{ text: 'Keys', link: '/keys' }] }]
