grep -rho 'gold-[a-z]*' /srv/vault
